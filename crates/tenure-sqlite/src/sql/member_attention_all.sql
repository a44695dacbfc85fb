UPDATE tenure_members SET attention = max(attention + 1048576, ?1)
