//! `tenure doctor`: prints what the doctor found, and what to do about it.

use tenure_api::{Finding, Findings, Verdict};
use tenure_doctor::Doctor;

use crate::args::DoctorArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::output::{Output, Table, Tone};

pub(crate) async fn run(context: &Context, args: &DoctorArgs) -> Outcome {
    let doctor = Doctor {
        shown_store: context.shown_store(),
        namespace: context.namespace.clone(),
        clock_for: args.clock_for,
    };
    // A short ttl: the store's countdown is then fine enough to read.
    let found = doctor.examine(context.builder().preset(args.preset.into())).await;
    let findings = Findings { findings: found.into_iter().map(Finding::from).collect() };
    let wrong = findings.findings.iter().any(|finding| finding.verdict == Verdict::Wrong);
    print(context.output, &findings)?;
    Ok(if wrong { Exit::No } else { Exit::Ok })
}

fn print(out: Output, findings: &Findings) -> Outcome<()> {
    if out.json {
        return out.value(findings);
    }
    let mut table = Table::facts();
    for finding in &findings.findings {
        table.row(vec![
            (tone_of(finding.verdict), finding.verdict.to_string()),
            (Tone::Strong, finding.what.clone()),
            (Tone::Plain, finding.found.clone()),
        ]);
        if let Some(remedy) = &finding.remedy {
            let cells = [String::new(), String::new(), format!("→ {remedy}")];
            table.row(cells.into_iter().map(|cell| (Tone::Plain, cell)).collect());
        }
    }
    out.table(&table)
}

fn tone_of(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Fine => Tone::Good,
        Verdict::Wrong => Tone::Bad,
        _ => Tone::Warn,
    }
}
