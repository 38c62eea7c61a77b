@scheduler("drr", 2, 1514, 1)
control Arrival(in policy_input_t seen, inout policy_verdict_t verdict) { apply { } }
control Departure(in policy_input_t seen, inout policy_verdict_t verdict) { apply { } }
