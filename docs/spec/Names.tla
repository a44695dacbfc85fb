------------------------------- MODULE Names -------------------------------
(***************************************************************************)
(* One name of Tenure in a store that judges: lives take it, drop it and   *)
(* expire; requests and copies of them arrive late or never.               *)
(*                                                                         *)
(* There is no clock here, since none is needed: a row's ttl runs out at   *)
(* any moment (Expire), and a heartbeat that was judged alive before may   *)
(* be written after that (JudgeBeat, WriteBeat), as in Tenure.tla.  How    *)
(* long an owner trusts in its name is the same trust as in a term.        *)
(*                                                                         *)
(* Four guards can be taken away, each by a constant and with a file that  *)
(* shows what TLC finds then:                                              *)
(*                                                                         *)
(*   EndsFirst  a take ends the expired owner in the same step             *)
(*   Scoped     a drop names exactly the token and the life                *)
(*   Counts     tokens are counted for all time, not by what is bound      *)
(*   Repeats    the winning attempt again is answered with its binding     *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS Members, MaxLives, MaxAttempts, MaxLetters, MaxRev, EndsFirst, Scoped, Counts, Repeats

VARIABLES
    life,     \* life[m]: the incarnation of the running process; 0 before any
    row,      \* row[m]: the life that the store has, and whether its ttl has run out
    cell,     \* how the name is bound: whose it is, its token, by which attempt
    rev,      \* the namespace's counter
    tries,    \* tries[m]: how many attempts the process has made
    given,    \* every binding that was answered, as a history
    dropped,  \* tokens that their owners asked to drop
    letters   \* everything in flight; nothing has to arrive, ever

vars == <<life, row, cell, rev, tries, given, dropped, letters>>

NoRow == [life |-> 0, silent |-> FALSE]
Free == [m |-> "none", life |-> 0, token |-> 0, nonce |-> 0]

Init ==
    /\ life = [m \in Members |-> 0]
    /\ row = [m \in Members |-> NoRow]
    /\ cell = Free
    /\ rev = 0
    /\ tries = [m \in Members |-> 0]
    /\ given = {}
    /\ dropped = {}
    /\ letters = {}

Send(l) == letters' = letters \cup {l}
\* A request arrives; a copy of it may still be on its way.
Taken(l) == letters' = letters \/ letters' = letters \ {l}
Live(m, l) == row[m].life = l /\ ~row[m].silent

\* A process starts; its member's last life is over, or never was.
Join(m) ==
    /\ life[m] < MaxLives
    /\ row[m] = NoRow
    /\ life' = [life EXCEPT ![m] = @ + 1]
    /\ row' = [row EXCEPT ![m] = [life |-> life[m] + 1, silent |-> FALSE]]
    /\ UNCHANGED <<cell, rev, tries, given, dropped, letters>>

Expire(m) ==
    /\ row[m] # NoRow
    /\ row' = [row EXCEPT ![m].silent = TRUE]
    /\ UNCHANGED <<life, cell, rev, tries, given, dropped, letters>>

JudgeBeat(m) ==
    /\ Live(m, life[m])
    /\ Send([kind |-> "beat", m |-> m, life |-> life[m], token |-> 0, nonce |-> 0])
    /\ UNCHANGED <<life, row, cell, rev, tries, given, dropped>>

\* It finds the row of that life, or none (rule M1).
WriteBeat(l) ==
    /\ l.kind = "beat"
    /\ row' = IF row[l.m].life = l.life THEN [row EXCEPT ![l.m].silent = FALSE] ELSE row
    /\ Taken(l)
    /\ UNCHANGED <<life, cell, rev, tries, given, dropped>>

AskTake(m) ==
    /\ life[m] > 0 /\ tries[m] < MaxAttempts
    /\ tries' = [tries EXCEPT ![m] = @ + 1]
    /\ Send([kind |-> "take", m |-> m, life |-> life[m], token |-> 0, nonce |-> tries[m] + 1])
    /\ UNCHANGED <<life, row, cell, rev, given, dropped>>

AskDrop(m) ==
    /\ \E g \in given :
        /\ g.m = m /\ g.life = life[m] /\ g.token \notin dropped
        /\ dropped' = dropped \cup {g.token}
        /\ Send([kind |-> "drop", m |-> m, life |-> life[m], token |-> g.token, nonce |-> 0])
    /\ UNCHANGED <<life, row, cell, rev, tries, given>>

\* Without Counts a token follows the last one that is still to be seen.
NextToken == IF Counts THEN rev + 1 ELSE cell.token + 1

Bind(l) ==
    LET bound == [m |-> l.m, life |-> l.life, token |-> NextToken, nonce |-> l.nonce] IN
    /\ cell' = bound
    /\ given' = given \cup {bound}
    /\ rev' = rev + 1

\* Whether the owner there is may lose the name.
OwnerOver == cell = Free \/ row[cell.m].life # cell.life \/ row[cell.m].silent

\* Q3: the name is free, or its owner is not live and is ended in this very step (U3).
StoreTake(l) ==
    /\ l.kind = "take"
    /\ Taken(l)
    /\ IF Live(l.m, l.life)
       THEN IF cell.m = l.m /\ cell.life = l.life /\ cell.nonce = l.nonce /\ Repeats
            THEN UNCHANGED <<row, cell, rev, given>>
            ELSE IF OwnerOver \/ (cell.m = l.m /\ cell.nonce = l.nonce /\ ~Repeats)
            THEN /\ Bind(l)
                 /\ row' = IF /\ EndsFirst /\ cell # Free /\ cell.m # l.m
                              /\ row[cell.m].life = cell.life
                           THEN [row EXCEPT ![cell.m] = NoRow] ELSE row
            ELSE UNCHANGED <<row, cell, rev, given>>
       ELSE UNCHANGED <<row, cell, rev, given>>
    /\ UNCHANGED <<life, tries, dropped>>

\* Q4: exactly this binding, of exactly this life (U4).
StoreDrop(l) ==
    /\ l.kind = "drop"
    /\ Taken(l)
    /\ LET own == cell.m = l.m /\ cell.life = l.life /\ cell.token = l.token IN
       IF Live(l.m, l.life) /\ cell # Free /\ (own \/ ~Scoped)
       THEN cell' = Free /\ rev' = rev + 1
       ELSE UNCHANGED <<cell, rev>>
    /\ UNCHANGED <<life, row, tries, given, dropped>>

\* A life that is not live may be ended by any member, for any reason; what it owned is void (Q6).
End(m) ==
    /\ row[m].silent
    /\ row' = [row EXCEPT ![m] = NoRow]
    /\ UNCHANGED <<life, cell, rev, tries, given, dropped, letters>>

Next ==
    \/ \E m \in Members : Join(m) \/ Expire(m) \/ JudgeBeat(m) \/ AskTake(m) \/ AskDrop(m)
                          \/ End(m)
    \/ \E l \in letters : WriteBeat(l) \/ StoreTake(l) \/ StoreDrop(l)

Spec == Init /\ [][Next]_vars

Alike == Permutations(Members)

Bounded == Cardinality(letters) <= MaxLetters /\ rev <= MaxRev

-----------------------------------------------------------------------------
\* U1, U4, U5: what a live life was given, and has not asked to drop, is its own.
OwnersOwn ==
    \A g \in given : Live(g.m, g.life) /\ g.token \notin dropped => cell = g

\* U2: a token is given once, and the name's is the highest there ever was.
TokensRise ==
    /\ \A g, h \in given : g.token = h.token => g = h
    /\ cell # Free => \A g \in given : g.token <= cell.token
=============================================================================
