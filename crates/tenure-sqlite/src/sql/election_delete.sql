-- Only a row whose number is still 0 may go: numbers must not go back.
DELETE FROM tenure_elections WHERE ns = ?1 AND name = ?2 AND number = 0
