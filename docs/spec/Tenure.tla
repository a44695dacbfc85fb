------------------------------- MODULE Tenure -------------------------------
(***************************************************************************)
(* One election of Tenure: members with a ttl on the store's clock, terms  *)
(* with numbers, heartbeats, claims and releases in flight, and trust on   *)
(* the holder's own clock.                                                 *)
(*                                                                         *)
(* Read it for rule M2: no member takes a term from an expired one without *)
(* first ending that one, in the same atomic step.  A heartbeat that       *)
(* was judged alive a moment earlier, and is written a moment later, then  *)
(* finds no row and is answered "ended".  Two constants break the rule:    *)
(*                                                                         *)
(*   Revives    a heartbeat makes its row anew if there is none (an upsert)*)
(*   EndsFirst  FALSE: a claim takes the term and leaves the row behind    *)
(*                                                                         *)
(* With either of them TLC finds two members that trust at once; the files *)
(* Revives.cfg and TakesOnly.cfg are kept to show it, and `cargo xtask     *)
(* spec` fails if TLC does not find the violation there.                   *)
(*                                                                         *)
(* A store that only has compare-and-swap on single records (TwoRecords)   *)
(* cannot do that in one step.  It ends the member by a swap of its record *)
(* (EndExpired), then takes the term by a swap of the election's record    *)
(* (StoreClaim), and raises its own member's record before anything is won *)
(* (Confirm).  With EndsFirst FALSE it swaps the election at once, and TLC *)
(* finds that too (TwoRecordsTakesOnly.cfg).                               *)
(*                                                                         *)
(* A release may hand the term over: in the same step the store elects an  *)
(* heir, under a new number, until the term lapses (StoreRelease).  The    *)
(* heir looks, and leads for what is left of it (Look, HearHanded); its    *)
(* next heartbeat names the term, and if that comes in time the term is    *)
(* like one that was won (JudgeBeat).  Any member may take what has lapsed, *)
(* and its holder is not ended by that.  Two constants break this:         *)
(*                                                                         *)
(*   WholeTrust  the heir trusts as if it had won when it looked           *)
(*   AnyBeat     a heartbeat that does not name the term stretches trust   *)
(*                                                                         *)
(* Their files are WholeTrust.cfg and AnyBeat.cfg.                         *)
(*                                                                         *)
(* Left out: priorities, step-down, pause, several elections, and how soon *)
(* anything happens.  Those are checked on the real machine.               *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
    Members,     \* who may stand
    Ttl,         \* how long a row lives after a heartbeat, on the store's clock
    Trust,       \* how long a grant is trusted, on the holder's clock
    Drift,       \* how many steps a clock may fall behind in a whole run
    MaxTime,     \* bounds, to make the state space finite
    MaxLives,
    MaxLetters,
    MaxNumber,
    Revives,
    EndsFirst,
    TwoRecords,  \* the store has no step over two records
    HandOver,    \* how long a term stands that its heir has not taken on; 0: none is handed over
    WholeTrust,
    AnyBeat

\* The margin: what a slow clock can miss is not trusted (rule T1).
ASSUME Trust + Drift <= Ttl

\* Handing over is a step over two records; it is not for longer than a ttl.
ASSUME HandOver <= Ttl /\ (TwoRecords => HandOver = 0)

VARIABLES
    now,      \* the store's clock
    slow,     \* slow[m]: how far m's clock is behind
    life,     \* life[m]: the incarnation of the running process; 0 before any
    row,      \* row[m]: the member's row in the store, or None
    term,     \* the election's row: number, holder, who won it by which bid,
              \* whether it was handed over, and when it lapses if it was not
              \* taken on; else 0
    bid,      \* bid[m]: when m last bid, and whether it waits for the answer
    trust,    \* trust[m]: the number m believes it holds, until when, and
              \* whether it was handed over and the store knows nothing of that
    letters   \* everything in flight; nothing has to arrive, ever

vars == <<now, slow, life, row, term, bid, trust, letters>>

None == [life |-> 0, beaten |-> 0]
Nothing == [number |-> 0, until |-> 0, handed |-> FALSE]

Clock(m) == now - slow[m]
Live(m) == row[m] # None /\ now < row[m].beaten + Ttl
Holds(m) == term.holder = m /\ term.life = life[m]
Trusts(m) == trust[m].number > 0 /\ Clock(m) < trust[m].until
Unconfirmed == term.lapses > 0
Lapsed == Unconfirmed /\ now >= term.lapses
\* The store has a term under m's name that m has given back already.
Owes(m) == /\ Holds(m)
           /\ \E l \in letters : /\ l.kind = "release" /\ l.m = m
                                 /\ l.life = life[m] /\ l.number = term.number

Later(a, b) == IF a > b THEN a ELSE b
Sooner(a, b) == IF a < b THEN a ELSE b
Send(l) == letters' = letters \cup {l}
\* A request arrives; a copy of it may still be on its way.
Take(l, answers) ==
    \/ letters' = (letters \ {l}) \cup answers
    \/ letters' = letters \cup answers

Vacant == [term EXCEPT !.holder = "none", !.life = 0, !.handed = FALSE, !.lapses = 0]
\* An heir won by no bid.
Handed(m) == [number |-> term.number + 1, holder |-> m, life |-> row[m].life,
              by |-> m, byLife |-> row[m].life, at |-> 0,
              handed |-> TRUE, lapses |-> now + HandOver]

Init ==
    /\ now = 1
    /\ slow = [m \in Members |-> 0]
    /\ life = [m \in Members |-> 0]
    /\ row = [m \in Members |-> None]
    /\ term = [number |-> 0, holder |-> "none", life |-> 0,
               by |-> "none", byLife |-> 0, at |-> 0,
               handed |-> FALSE, lapses |-> 0]
    /\ bid = [m \in Members |-> [at |-> 0, open |-> FALSE]]
    /\ trust = [m \in Members |-> Nothing]
    /\ letters = {}

-----------------------------------------------------------------------------
\* Time.  A clock may miss a step, Drift times in all.

Tick == /\ now < MaxTime
        /\ now' = now + 1
        /\ \/ slow' = slow
           \/ \E m \in Members : /\ slow[m] < Drift
                                 /\ slow' = [slow EXCEPT ![m] = @ + 1]
        /\ UNCHANGED <<life, row, term, bid, trust, letters>>

-----------------------------------------------------------------------------
\* The member.  What it sends carries the reading of its own clock: trust is
\* counted from before the request was sent (T1).

\* A process starts, or starts again after a crash: a new life.  The store
\* ends an older life of the same id only if it is dead or holds nothing.
Start(m) ==
    /\ life[m] < MaxLives
    /\ ~Live(m) \/ term.holder # m
    /\ life' = [life EXCEPT ![m] = @ + 1]
    /\ row' = [row EXCEPT ![m] = [life |-> life[m] + 1, beaten |-> now]]
    /\ term' = IF term.holder = m /\ ~TwoRecords THEN Vacant ELSE term
    /\ trust' = [trust EXCEPT ![m] = Nothing]
    /\ bid' = [bid EXCEPT ![m].open = FALSE]
    /\ UNCHANGED <<now, slow, letters>>

\* Only a holder's heartbeats matter here, and those of an heir that does not
\* know it is one.  A term that was handed over is named.
SendBeat(m) ==
    /\ trust[m].number > 0 \/ (Holds(m) /\ Unconfirmed)
    /\ Send([kind |-> "beat", m |-> m, life |-> life[m], at |-> Clock(m),
             number |-> IF trust[m].handed THEN trust[m].number ELSE 0])
    /\ UNCHANGED <<now, slow, life, row, term, bid, trust>>

\* One bid at a time, each with a mark of its own (the nonce of rule E2).  What was
\* handed over is not bid for before it is given back: the answer would be that term.
SendClaim(m) ==
    /\ life[m] > 0 /\ ~Trusts(m) /\ ~bid[m].open /\ Clock(m) > bid[m].at
    /\ ~(term.handed /\ Owes(m))
    /\ bid' = [bid EXCEPT ![m] = [at |-> Clock(m), open |-> TRUE]]
    /\ trust' = [trust EXCEPT ![m] = Nothing]
    /\ Send([kind |-> "claim", m |-> m, life |-> life[m], at |-> Clock(m)])
    /\ UNCHANGED <<now, slow, life, row, term>>

\* The work has stopped; then the term is given back (E4), exactly it (E1).
\* What a look says that was sent before counts for nothing from here on.
Resign(m) ==
    /\ trust[m].number > 0
    /\ trust' = [trust EXCEPT ![m] = Nothing]
    /\ letters' = {l \in letters : l.kind # "handed" \/ l.m # m} \cup
                  {[kind |-> "release", m |-> m, life |-> life[m],
                    number |-> trust[m].number]}
    /\ UNCHANGED <<now, slow, life, row, term, bid>>

\* An answer extends trust, even if it was over: this member was suspended and
\* did not notice.  The machine gives up such trust first (T3); here the store's
\* rules alone must do.  Of a term that was handed over, the answer must tell that
\* it is taken on.
HearAlive(l) ==
    /\ l.kind = "alive"
    /\ letters' = letters \ {l}
    /\ LET had == trust[l.m]
           known == ~had.handed \/ l.number = had.number \/ AnyBeat
       IN trust' = IF l.life = life[l.m] /\ had.number > 0 /\ known
                   THEN [trust EXCEPT ![l.m].until = Later(@, l.at + Trust),
                                      ![l.m].handed = FALSE]
                   ELSE trust
    /\ UNCHANGED <<now, slow, life, row, term, bid>>

\* The life is over, or the term that was named.
HearEnded(l) ==
    /\ l.kind \in {"ended", "lost"}
    /\ letters' = letters \ {l}
    /\ LET over == l.kind = "ended" \/ l.number = trust[l.m].number
       IN trust' = IF l.life = life[l.m] /\ over
                   THEN [trust EXCEPT ![l.m] = Nothing] ELSE trust
    /\ UNCHANGED <<now, slow, life, row, term, bid>>

\* Only the answer to the bid that is open counts, and only in time (B5).
HearWon(l) ==
    /\ l.kind = "won"
    /\ letters' = letters \ {l}
    /\ LET mine == l.life = life[l.m] /\ bid[l.m] = [at |-> l.at, open |-> TRUE] IN
       /\ bid' = IF mine THEN [bid EXCEPT ![l.m].open = FALSE] ELSE bid
       /\ trust' = IF mine /\ Clock(l.m) < l.at + Trust
                   THEN [trust EXCEPT ![l.m] =
                            [number |-> l.number, until |-> l.at + Trust,
                             handed |-> FALSE]]
                   ELSE trust
    /\ UNCHANGED <<now, slow, life, row, term>>

\* It waited long enough.  The bid may have won all the same.
GiveUp(m) ==
    /\ bid[m].open
    /\ bid' = [bid EXCEPT ![m].open = FALSE]
    /\ UNCHANGED <<now, slow, life, row, term, trust, letters>>

\* A look, by which a member learns that it was handed a term, and how much is
\* left of that: it trusts for so long, less what a slow clock can miss, counted
\* from before it asked.  Here the store is asked and answers in one step, and only
\* the answer travels: on a longer way there less would be left, and trust would
\* end sooner.  A member that has yet to give the term back does not take it on again.
Look(m) ==
    /\ Holds(m) /\ Unconfirmed /\ Live(m) /\ ~Trusts(m) /\ ~Owes(m)
    /\ LET left == Sooner(term.lapses, row[m].beaten + Ttl) - now
           span == IF WholeTrust THEN Trust ELSE left - Drift
       IN /\ left > 0 /\ span > 0
          /\ Send([kind |-> "handed", m |-> m, life |-> life[m],
                   number |-> term.number, until |-> Clock(m) + span])
    /\ UNCHANGED <<now, slow, life, row, term, bid, trust>>

HearHanded(l) ==
    /\ l.kind = "handed"
    /\ letters' = letters \ {l}
    /\ trust' = IF /\ l.life = life[l.m] /\ Clock(l.m) < l.until
                   /\ ~Trusts(l.m) /\ ~bid[l.m].open
                THEN [trust EXCEPT ![l.m] =
                         [number |-> l.number, until |-> l.until, handed |-> TRUE]]
                ELSE trust
    /\ UNCHANGED <<now, slow, life, row, term, bid>>

-----------------------------------------------------------------------------
\* The store.  A heartbeat is judged, and written later: the two halves of a
\* statement that waited for a lock, or of a careless implementation.  The term it
\* names is taken on in the first half, unless it has lapsed: then it is lost, even
\* if no other member has taken it yet.

JudgeBeat(l) ==
    /\ l.kind = "beat"
    /\ LET alive == Live(l.m) /\ row[l.m].life = l.life
           held == /\ term.holder = l.m /\ term.life = l.life
                   /\ term.number = l.number /\ ~Lapsed
           judged == [kind |-> "judged", m |-> l.m, life |-> l.life,
                      at |-> l.at, number |-> l.number, seen |-> now]
           ended == [kind |-> "ended", m |-> l.m, life |-> l.life]
           lost == [kind |-> "lost", m |-> l.m, life |-> l.life, number |-> l.number]
           loses == alive /\ l.number > 0 /\ ~held
       IN /\ Take(l, {IF loses THEN lost
                      ELSE IF alive \/ Revives THEN judged ELSE ended})
          /\ term' = IF alive /\ held THEN [term EXCEPT !.lapses = 0] ELSE term
          /\ row' = IF loses THEN [row EXCEPT ![l.m].beaten = now] ELSE row
    /\ UNCHANGED <<now, slow, life, bid, trust>>

WriteBeat(l) ==
    /\ l.kind = "judged"
    /\ LET there == row[l.m].life = l.life \/ (Revives /\ row[l.m] = None)
           alive == [kind |-> "alive", m |-> l.m, life |-> l.life, at |-> l.at,
                     number |-> l.number]
           ended == [kind |-> "ended", m |-> l.m, life |-> l.life]
       IN /\ letters' = (letters \ {l}) \cup {IF there THEN alive ELSE ended}
          /\ row' = IF there
                    THEN [row EXCEPT ![l.m] =
                             [life |-> l.life, beaten |-> Later(@.beaten, l.seen)]]
                    ELSE row
    /\ UNCHANGED <<now, slow, life, term, bid, trust>>

\* Any member may end one whose ttl has run out, without taking its term: the term
\* is over with the life (rule M5), and StoreClaim finds it so.  Over two records it is
\* a swap on the version that was silent: a heartbeat that is written after it finds
\* nothing to raise.
EndExpired(m) ==
    /\ TwoRecords \/ EndsFirst
    /\ row[m] # None /\ ~Live(m)
    /\ row' = [row EXCEPT ![m] = None]
    /\ UNCHANGED <<now, slow, life, term, bid, trust, letters>>

\* A claim, in one atomic step.  If the holder's ttl has run out the holder is
\* ended here: rule M2.  With two records it must have been ended before.  Who
\* was handed the term is answered with it, however late its bid comes, and takes it
\* on by that.  What has lapsed is won anew by a bid, and no live member is
\* ended for it.
StoreClaim(l) ==
    /\ l.kind = "claim"
    /\ LET m == l.m
           acting == Live(m) /\ row[m].life = l.life
           winner == term.by = m /\ term.byLife = l.life
           repeated == winner /\ l.at = term.at
           late == winner /\ l.at < term.at
           mine == term.holder = m /\ term.life = l.life
           over == row[term.holder].life # term.life
           dead == /\ term.holder \in Members
                   /\ over \/ (~Live(term.holder) /\ ~(TwoRecords /\ EndsFirst))
           given == mine /\ term.handed /\ ~Lapsed
           free == term.holder = "none" \/ (mine /\ ~given) \/ dead \/ Lapsed
           wins == acting /\ ~repeated /\ ~late /\ free
           again == acting /\ (given \/ (repeated /\ mine /\ ~Lapsed))
           number == IF wins THEN term.number + 1 ELSE term.number
           answer == [kind |-> IF TwoRecords THEN "taken" ELSE "won",
                      m |-> m, life |-> l.life, at |-> l.at, number |-> number]
           ends == IF wins /\ dead /\ EndsFirst
                   THEN [row EXCEPT ![term.holder] = None] ELSE row
       IN /\ Take(l, IF wins \/ again THEN {answer} ELSE {})
          /\ row' = IF (wins \/ again) /\ ~TwoRecords
                    THEN [ends EXCEPT ![m].beaten = now] ELSE row
          /\ term' = IF wins
                     THEN [number |-> number, holder |-> m, life |-> l.life,
                           by |-> m, byLife |-> l.life, at |-> l.at,
                           handed |-> FALSE, lapses |-> 0]
                     ELSE IF again
                     THEN [term EXCEPT !.at = Later(@, l.at), !.lapses = 0]
                     ELSE term
    /\ UNCHANGED <<now, slow, life, bid, trust>>

\* The second half of a claim over two records: a member that was ended meanwhile finds
\* it out here, and has won nothing, though its name stands in the election.
Confirm(l) ==
    /\ l.kind = "taken"
    /\ LET there == Live(l.m) /\ row[l.m].life = l.life
           won == [l EXCEPT !.kind = "won"]
       IN /\ letters' = (letters \ {l}) \cup (IF there THEN {won} ELSE {})
          /\ row' = IF there THEN [row EXCEPT ![l.m].beaten = now] ELSE row
    /\ UNCHANGED <<now, slow, life, term, bid, trust>>

\* The election is vacant, or another's in the same step: of one that lives and has
\* bid, whether or not the bid came here.
StoreRelease(l) ==
    /\ l.kind = "release"
    /\ Take(l, {})
    /\ IF term.holder = l.m /\ term.life = l.life /\ term.number = l.number
       THEN \/ term' = Vacant
            \/ \E m \in Members \ {l.m} : /\ HandOver > 0 /\ Live(m) /\ bid[m].at > 0
                                         /\ term' = Handed(m)
       ELSE term' = term
    /\ UNCHANGED <<now, slow, life, row, bid, trust>>

-----------------------------------------------------------------------------
Next ==
    \/ Tick
    \/ \E m \in Members :
          \/ Start(m) \/ SendBeat(m) \/ SendClaim(m) \/ Resign(m) \/ GiveUp(m)
          \/ EndExpired(m) \/ Look(m)
    \/ \E l \in letters :
          \/ HearAlive(l) \/ HearEnded(l) \/ HearWon(l)
          \/ JudgeBeat(l) \/ WriteBeat(l) \/ StoreClaim(l) \/ StoreRelease(l)
          \/ Confirm(l) \/ HearHanded(l)

Spec == Init /\ [][Next]_vars

\* The members are interchangeable, so half of the states need not be seen.
Alike == Permutations(Members)

\* Bounds, not rules: only so many letters are looked at, and so many terms.  Bids
\* take time, but a term may be handed to and fro at once, for ever.
Bounded == Cardinality(letters) <= MaxLetters /\ term.number <= MaxNumber

-----------------------------------------------------------------------------
\* What must hold.

OneTrusts == \A a, b \in Members : Trusts(a) /\ Trusts(b) => a = b

\* A member that trusts holds, by the store's own clock: stronger than the above.
TrustWithinGrant ==
    \A m \in Members : Trusts(m) => /\ Holds(m) /\ term.number = trust[m].number
                                    /\ Live(m) /\ row[m].life = life[m]
                                    /\ ~Lapsed

\* Numbers only rise, and with every new winner (fencing tokens).
NumbersRise ==
    [][/\ term'.number >= term.number
       /\ (term'.holder \in Members /\ <<term'.holder, term'.life>> # <<term.holder, term.life>>)
            => term'.number > term.number]_vars
=============================================================================
