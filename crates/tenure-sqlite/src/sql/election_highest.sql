SELECT max(coalesce((SELECT max(number) FROM tenure_elections), 0),
    coalesce((SELECT max(number) FROM tenure_forgotten), 0))
