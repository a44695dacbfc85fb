UPDATE tenure_members SET attention = attention + 1048576
