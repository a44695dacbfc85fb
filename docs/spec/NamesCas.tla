----------------------------- MODULE NamesCas -----------------------------
(***************************************************************************)
(* One name of Tenure over single records with compare-and-swap: the cell  *)
(* of the name, the floor of the numbers, and a record for each member.    *)
(*                                                                         *)
(* A take loads the cell and the floor, ends a silent owner by a swap of   *)
(* its member's record, swaps the cell, looks at the floor again, raises   *)
(* its own member's heartbeat, and only then is anything its own.  A drop  *)
(* leaves a small record, the tombstone.  Tombstones and names of lives    *)
(* that are over are collected: the floor is raised, then the cell is      *)
(* removed.  A process may stop for good between any two steps.            *)
(*                                                                         *)
(* The guards, each a constant with a file that shows it missing:          *)
(*                                                                         *)
(*   EndsFirst    a silent owner is ended before its name is swapped       *)
(*   SecondLook   the floor is looked at again after the swap              *)
(*   Confirms     the heartbeat is raised before anything is answered      *)
(*   RaisesFirst  the floor is raised before a record is removed           *)
(*   Versioned    a record is removed only in the version that was seen    *)
(***************************************************************************)
EXTENDS Naturals, TLC

CONSTANTS Members, MaxLives, MaxVersion, EndsFirst, SecondLook, Confirms, RaisesFirst, Versioned

VARIABLES
    life,     \* life[m]: the incarnation of the running process
    rec,      \* rec[m]: the member's record: its life, and "live", "silent" or "over"
    cell,     \* the name's record; version 0: there is none
    version,  \* versions given out
    floor,
    doing,    \* doing[m]: what the process is at, with what it has seen
    sweeping, \* what a collector has seen; version 0: nothing
    given,    \* every binding that was answered, as a history
    dropped   \* tokens that were dropped

vars == <<life, rec, cell, version, floor, doing, sweeping, given, dropped>>

Absent == [version |-> 0, m |-> "none", life |-> 0, token |-> 0, rev |-> 0]
Idle == [step |-> "idle", seen |-> Absent, floor |-> 0]
Bound(c) == c.life > 0
Max(a, b) == IF a > b THEN a ELSE b

Init ==
    /\ life = [m \in Members |-> 1]
    /\ rec = [m \in Members |-> [life |-> 1, is |-> "live"]]
    /\ cell = Absent
    /\ version = 0
    /\ floor = 0
    /\ doing = [m \in Members |-> Idle]
    /\ sweeping = Absent
    /\ given = {}
    /\ dropped = {}

\* The life of m is over: it starts anew, and what it was at is forgotten.
Restart(m) ==
    /\ rec[m].is = "over" /\ life[m] < MaxLives
    /\ life' = [life EXCEPT ![m] = @ + 1]
    /\ rec' = [rec EXCEPT ![m] = [life |-> life[m] + 1, is |-> "live"]]
    /\ doing' = [doing EXCEPT ![m] = Idle]
    /\ UNCHANGED <<cell, version, floor, sweeping, given, dropped>>

\* Without an owner, or of a life that is over.
Void(c) == IF Bound(c) THEN rec[c.m].life # c.life \/ rec[c.m].is = "over" ELSE TRUE

Silent(m) ==
    /\ rec[m].is = "live"
    /\ rec' = [rec EXCEPT ![m].is = "silent"]
    /\ UNCHANGED <<life, cell, version, floor, doing, sweeping, given, dropped>>

\* The owner's own heartbeat: a swap of its record, unless that was ended.
Beat(m) ==
    /\ rec[m].is = "silent" /\ rec[m].life = life[m]
    /\ rec' = [rec EXCEPT ![m].is = "live"]
    /\ UNCHANGED <<life, cell, version, floor, doing, sweeping, given, dropped>>

\* Rule M2: a swap of the record on the version that was silent.
End(m) ==
    /\ rec[m].is = "silent"
    /\ rec' = [rec EXCEPT ![m].is = "over"]
    /\ UNCHANGED <<life, cell, version, floor, doing, sweeping, given, dropped>>

Owns(m) == \E g \in given : g.m = m /\ g.life = life[m] /\ g.token \notin dropped

Load(m) ==
    /\ doing[m].step = "idle" /\ ~Owns(m)
    /\ doing' = [doing EXCEPT ![m] = [step |-> "swap", seen |-> cell, floor |-> floor]]
    /\ UNCHANGED <<life, rec, cell, version, floor, sweeping, given, dropped>>

\* Whether what was seen may be taken now.
MayTake(c) == IF Void(c) \/ EndsFirst THEN Void(c) ELSE rec[c.m].is = "silent"

Swap(m) ==
    LET seen == doing[m].seen
        number == Max(seen.rev, doing[m].floor) + 1 IN
    /\ doing[m].step \in {"swap", "again"}
    /\ IF doing[m].step = "swap" THEN MayTake(seen) ELSE TRUE
    /\ version < MaxVersion
    /\ IF cell.version = seen.version
       THEN LET new == [version |-> version + 1, m |-> m, life |-> life[m],
                        token |-> number, rev |-> number] IN
            /\ cell' = new
            /\ version' = version + 1
            /\ doing' = [doing EXCEPT ![m].step = "look", ![m].seen = new]
       ELSE doing' = [doing EXCEPT ![m] = Idle] /\ UNCHANGED <<cell, version>>
    /\ UNCHANGED <<life, rec, floor, sweeping, given, dropped>>

\* The second look: a number that is not above the floor gets the next one.
Look(m) ==
    /\ doing[m].step = "look"
    /\ doing' = IF SecondLook /\ doing[m].seen.token <= floor
                THEN [doing EXCEPT ![m].step = "again", ![m].floor = floor]
                ELSE [doing EXCEPT ![m].step = "confirm"]
    /\ UNCHANGED <<life, rec, cell, version, floor, sweeping, given, dropped>>

\* Only now is it answered, if the life is not over.
Confirm(m) ==
    LET own == rec[m].life = life[m] /\ rec[m].is # "over"
        token == doing[m].seen.token IN
    /\ doing[m].step = "confirm"
    /\ doing' = [doing EXCEPT ![m] = Idle]
    /\ rec' = IF own /\ Confirms THEN [rec EXCEPT ![m].is = "live"] ELSE rec
    /\ given' = IF own \/ ~Confirms
                THEN given \cup {[m |-> m, life |-> life[m], token |-> token, lived |-> own,
                                  rises |-> \A g \in given : g.token < token]}
                ELSE given
    /\ UNCHANGED <<life, cell, version, floor, sweeping, dropped>>

\* A drop swaps exactly its own binding for a tombstone.
Drop(m) ==
    /\ doing[m].step = "idle" /\ Owns(m) /\ rec[m].life = life[m] /\ rec[m].is # "over"
    /\ cell.m = m /\ cell.life = life[m] /\ version < MaxVersion
    /\ dropped' = dropped \cup {cell.token}
    /\ cell' = [cell EXCEPT !.version = version + 1, !.m = "none", !.life = 0, !.token = 0]
    /\ version' = version + 1
    /\ UNCHANGED <<life, rec, floor, doing, sweeping, given>>

\* A collector sees a record that only a number depends on, and raises the floor.
Sweep ==
    /\ sweeping = Absent /\ cell # Absent
    /\ Void(cell)
    /\ sweeping' = cell
    /\ floor' = IF RaisesFirst THEN Max(floor, cell.rev) ELSE floor
    /\ UNCHANGED <<life, rec, cell, version, doing, given, dropped>>

Remove ==
    /\ sweeping # Absent
    /\ sweeping' = Absent
    /\ cell' = IF cell.version = sweeping.version \/ ~Versioned THEN Absent ELSE cell
    /\ UNCHANGED <<life, rec, version, floor, doing, given, dropped>>

Next ==
    \/ \E m \in Members : \/ Restart(m) \/ Silent(m) \/ Beat(m) \/ End(m) \/ Load(m)
                          \/ Swap(m) \/ Look(m) \/ Confirm(m) \/ Drop(m)
    \/ Sweep \/ Remove

Spec == Init /\ [][Next]_vars

Alike == Permutations(Members)

-----------------------------------------------------------------------------
\* U1, U4, U5: what a life that is not over was given, and has not dropped, is its own.
OwnersOwn ==
    \A g \in given :
        (rec[g.m] = [life |-> g.life, is |-> "live"] /\ g.token \notin dropped)
            => cell.m = g.m /\ cell.life = g.life /\ cell.token = g.token

\* U2: every token is above all that were given before it.
TokensRise == \A g \in given : g.rises

\* M2: nothing is given to a life that is over.
GivenToLives == \A g \in given : g.lived
=============================================================================
