------------------------------- MODULE Tenure -------------------------------
(***************************************************************************)
(* One election of Tenure: members with a ttl on the store's clock, terms  *)
(* with numbers, heartbeats, claims and releases in flight, and trust on   *)
(* the holder's own clock.                                                 *)
(*                                                                         *)
(* Read it for rule M2: nobody takes a term from an expired member without *)
(* first ending that member, in the same atomic step.  A heartbeat that    *)
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
    Revives,
    EndsFirst,
    TwoRecords   \* the store has no step over two records

\* The margin: what a slow clock can miss is not trusted (rule T1).
ASSUME Trust + Drift <= Ttl

VARIABLES
    now,      \* the store's clock
    slow,     \* slow[m]: how far m's clock is behind
    life,     \* life[m]: the incarnation of the running process; 0 before any
    row,      \* row[m]: the member's row in the store, or None
    term,     \* the election's row: number, holder, and who won it by which bid
    bid,      \* bid[m]: when m last bid, and whether it waits for the answer
    trust,    \* trust[m]: the number m believes it holds, and until when
    letters   \* everything in flight; nothing has to arrive, ever

vars == <<now, slow, life, row, term, bid, trust, letters>>

None == [life |-> 0, beaten |-> 0]
Nothing == [number |-> 0, until |-> 0]

Clock(m) == now - slow[m]
Live(m) == row[m] # None /\ now < row[m].beaten + Ttl
Holds(m) == term.holder = m /\ term.life = life[m]
Trusts(m) == trust[m].number > 0 /\ Clock(m) < trust[m].until

Later(a, b) == IF a > b THEN a ELSE b
Send(l) == letters' = letters \cup {l}
\* A request arrives; a copy of it may still be on its way.
Take(l, answers) ==
    \/ letters' = (letters \ {l}) \cup answers
    \/ letters' = letters \cup answers

Vacant == [term EXCEPT !.holder = "nobody", !.life = 0]

Init ==
    /\ now = 1
    /\ slow = [m \in Members |-> 0]
    /\ life = [m \in Members |-> 0]
    /\ row = [m \in Members |-> None]
    /\ term = [number |-> 0, holder |-> "nobody", life |-> 0,
               by |-> "nobody", byLife |-> 0, at |-> 0]
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

\* Only a holder's heartbeats matter here.
SendBeat(m) ==
    /\ trust[m].number > 0
    /\ Send([kind |-> "beat", m |-> m, life |-> life[m], at |-> Clock(m)])
    /\ UNCHANGED <<now, slow, life, row, term, bid, trust>>

\* One bid at a time, each with a mark of its own (the nonce of rule E2).
SendClaim(m) ==
    /\ life[m] > 0 /\ ~Trusts(m) /\ ~bid[m].open /\ Clock(m) > bid[m].at
    /\ bid' = [bid EXCEPT ![m] = [at |-> Clock(m), open |-> TRUE]]
    /\ trust' = [trust EXCEPT ![m] = Nothing]
    /\ Send([kind |-> "claim", m |-> m, life |-> life[m], at |-> Clock(m)])
    /\ UNCHANGED <<now, slow, life, row, term>>

\* The work has stopped; then the term is given back (E4), exactly it (E1).
Resign(m) ==
    /\ trust[m].number > 0
    /\ trust' = [trust EXCEPT ![m] = Nothing]
    /\ Send([kind |-> "release", m |-> m, life |-> life[m],
             number |-> trust[m].number])
    /\ UNCHANGED <<now, slow, life, row, term, bid>>

\* An answer extends trust, even if it was over: this member was suspended and
\* did not notice.  The machine gives up such trust first (T3); here the store's
\* rules alone must do.
HearAlive(l) ==
    /\ l.kind = "alive"
    /\ letters' = letters \ {l}
    /\ trust' = IF l.life = life[l.m] /\ trust[l.m].number > 0 /\ l.at + Trust > trust[l.m].until
                THEN [trust EXCEPT ![l.m].until = l.at + Trust]
                ELSE trust
    /\ UNCHANGED <<now, slow, life, row, term, bid>>

HearEnded(l) ==
    /\ l.kind = "ended"
    /\ letters' = letters \ {l}
    /\ trust' = IF l.life = life[l.m] THEN [trust EXCEPT ![l.m] = Nothing] ELSE trust
    /\ UNCHANGED <<now, slow, life, row, term, bid>>

\* Only the answer to the bid that is open counts, and only in time (B5).
HearWon(l) ==
    /\ l.kind = "won"
    /\ letters' = letters \ {l}
    /\ LET mine == l.life = life[l.m] /\ bid[l.m] = [at |-> l.at, open |-> TRUE] IN
       /\ bid' = IF mine THEN [bid EXCEPT ![l.m].open = FALSE] ELSE bid
       /\ trust' = IF mine /\ Clock(l.m) < l.at + Trust
                   THEN [trust EXCEPT ![l.m] =
                            [number |-> l.number, until |-> l.at + Trust]]
                   ELSE trust
    /\ UNCHANGED <<now, slow, life, row, term>>

\* It waited long enough.  The bid may have won all the same.
GiveUp(m) ==
    /\ bid[m].open
    /\ bid' = [bid EXCEPT ![m].open = FALSE]
    /\ UNCHANGED <<now, slow, life, row, term, trust, letters>>

-----------------------------------------------------------------------------
\* The store.  A heartbeat is judged, and written later: the two halves of a
\* statement that waited for a lock, or of a careless implementation.

JudgeBeat(l) ==
    /\ l.kind = "beat"
    /\ LET alive == Live(l.m) /\ row[l.m].life = l.life
           judged == [kind |-> "judged", m |-> l.m, life |-> l.life,
                      at |-> l.at, seen |-> now]
           ended == [kind |-> "ended", m |-> l.m, life |-> l.life]
       IN Take(l, {IF alive \/ Revives THEN judged ELSE ended})
    /\ UNCHANGED <<now, slow, life, row, term, bid, trust>>

WriteBeat(l) ==
    /\ l.kind = "judged"
    /\ LET there == row[l.m].life = l.life \/ (Revives /\ row[l.m] = None)
           alive == [kind |-> "alive", m |-> l.m, life |-> l.life, at |-> l.at]
           ended == [kind |-> "ended", m |-> l.m, life |-> l.life]
       IN /\ letters' = (letters \ {l}) \cup {IF there THEN alive ELSE ended}
          /\ row' = IF there
                    THEN [row EXCEPT ![l.m] =
                             [life |-> l.life, beaten |-> Later(@.beaten, l.seen)]]
                    ELSE row
    /\ UNCHANGED <<now, slow, life, term, bid, trust>>

\* Anybody may end a member whose ttl has run out.  It is a swap on the version
\* that was silent: a heartbeat that is written after it finds nothing to raise.
EndExpired(m) ==
    /\ TwoRecords /\ row[m] # None /\ ~Live(m)
    /\ row' = [row EXCEPT ![m] = None]
    /\ UNCHANGED <<now, slow, life, term, bid, trust, letters>>

\* A claim, in one atomic step.  If the holder's ttl has run out the holder is
\* ended here: rule M2.  With two records it must have been ended before.
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
           free == term.holder = "nobody" \/ mine \/ dead
           wins == acting /\ ~repeated /\ ~late /\ free
           again == acting /\ repeated /\ mine
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
                           by |-> m, byLife |-> l.life, at |-> l.at]
                     ELSE term
    /\ UNCHANGED <<now, slow, life, bid, trust>>

\* The second half of a claim over two records: whoever was ended meanwhile finds
\* it out here, and has won nothing, though its name stands in the election.
Confirm(l) ==
    /\ l.kind = "taken"
    /\ LET there == Live(l.m) /\ row[l.m].life = l.life
           won == [l EXCEPT !.kind = "won"]
       IN /\ letters' = (letters \ {l}) \cup (IF there THEN {won} ELSE {})
          /\ row' = IF there THEN [row EXCEPT ![l.m].beaten = now] ELSE row
    /\ UNCHANGED <<now, slow, life, term, bid, trust>>

StoreRelease(l) ==
    /\ l.kind = "release"
    /\ Take(l, {})
    /\ term' = IF /\ term.holder = l.m /\ term.life = l.life
                  /\ term.number = l.number
               THEN Vacant ELSE term
    /\ UNCHANGED <<now, slow, life, row, bid, trust>>

-----------------------------------------------------------------------------
Next ==
    \/ Tick
    \/ \E m \in Members :
          \/ Start(m) \/ SendBeat(m) \/ SendClaim(m) \/ Resign(m) \/ GiveUp(m)
          \/ EndExpired(m)
    \/ \E l \in letters :
          \/ HearAlive(l) \/ HearEnded(l) \/ HearWon(l)
          \/ JudgeBeat(l) \/ WriteBeat(l) \/ StoreClaim(l) \/ StoreRelease(l)
          \/ Confirm(l)

Spec == Init /\ [][Next]_vars

\* The members are interchangeable, so half of the states need not be seen.
Alike == Permutations(Members)

\* A bound, not a rule: only so many letters are looked at.
FewLetters == Cardinality(letters) <= MaxLetters

-----------------------------------------------------------------------------
\* What must hold.

OneTrusts == \A a, b \in Members : Trusts(a) /\ Trusts(b) => a = b

\* Whoever trusts holds, by the store's own clock: stronger than the above.
TrustWithinGrant ==
    \A m \in Members : Trusts(m) => /\ Holds(m) /\ term.number = trust[m].number
                                    /\ Live(m) /\ row[m].life = life[m]

\* Numbers only rise, and with every new winner (fencing tokens).
NumbersRise ==
    [][/\ term'.number >= term.number
       /\ (term'.holder \in Members /\ <<term'.holder, term'.life>> # <<term.holder, term.life>>)
            => term'.number > term.number]_vars
=============================================================================
