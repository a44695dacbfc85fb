//! A web service of several processes: each reports who leads, the leader answers, and the
//! others pass requests on to it. HTTP is kept to what `curl` needs.
//!
//! ```sh
//! cargo run --example web_service -- sqlite:web.db 127.0.0.1:8001   # and 8002 in another terminal
//! curl 127.0.0.1:8002/work
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error;

use tenure::{Election, Tenure};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let url = args.next().unwrap_or_else(|| "memory:".into());
    let listener = TcpListener::bind(args.next().unwrap_or("127.0.0.1:0".into())).await?;
    let here = listener.local_addr()?.to_string();
    let tenure = Tenure::builder(&url).endpoint(&here).connect().await?;
    println!("listens on {here}");

    // Stands for as long as the service runs; what it leads is asked for with each request.
    let election = tenure.election("web-service");
    let standing = election.on_elected(|leadership| async move {
        println!("leads: term {}", leadership.token());
    });
    tokio::spawn(standing.stand());
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let election = election.clone();
                tokio::spawn(async move {
                    if let Err(error) = answer(accepted?.0, &election).await {
                        println!("a request failed: {error}");
                    }
                    Ok::<_, std::io::Error>(())
                });
            }
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    tenure.shutdown().await?;
    Ok(())
}

async fn answer(mut client: TcpStream, election: &Election) -> Result<(), Box<dyn Error>> {
    let mut head = vec![0; 4096];
    let length = client.peek(&mut head).await?;
    let is_status = head[..length].starts_with(b"GET /leader ");
    // Not the route by which a load balancer asks whether a process is ready: a process that
    // does not lead is as healthy as the one that does.
    let done = election.run_if_leader(|leadership| async move { leadership.token() }).await;
    let view = election.view().await?;
    let (status, text) = match (done, view.holder) {
        (_, Some(leader)) if is_status => {
            ("200 OK", format!("{} leads term {}\n", leader.member.id, view.number))
        }
        (Some(token), _) if !is_status => ("200 OK", format!("done under token {token}\n")),
        (None, Some(leader)) if !is_status => {
            let to = leader.profile.endpoints().first().ok_or("the leader has no endpoint")?;
            let mut there = TcpStream::connect(to.as_str()).await?;
            copy_bidirectional(&mut client, &mut there).await?;
            return Ok(());
        }
        _ => ("503 Service Unavailable", "no leader for now; ask again\n".to_owned()),
    };
    client.read_exact(&mut head[..length]).await?;
    let answer = format!("HTTP/1.0 {status}\r\nContent-Length: {}\r\n\r\n{text}", text.len());
    client.write_all(answer.as_bytes()).await?;
    Ok(client.shutdown().await?)
}
