package bisect

// An edge is the step in which a player joins a combination. Weight is the share of
// orders that take it.
type edge struct {
	from   Set
	player int
	weight float64
}

// edges returns every step between known combinations that lies on an order from good to
// bad, and the number of such orders. With all 2^n combinations known the orders are n!
// and a weight is Shapley's |S|!(n-|S|-1)!/n!. Where combinations are missing, the
// orders through them do not count: nobody can build them.
func (g Game) edges() (list []edge, orders float64) {
	known := g.known()
	up := map[Set]float64{}   // orders of the players in a set that pass known sets only
	down := map[Set]float64{} // orders of those not in it
	for _, s := range known {
		if s == 0 {
			up[s] = 1
		}
		for i := range g.Players {
			if s.Has(i) {
				up[s] += up[s.Without(i)]
			}
		}
	}
	for at := len(known) - 1; at >= 0; at-- {
		s := known[at]
		if s == g.Full() {
			down[s] = 1
		}
		for i := range g.Players {
			if !s.Has(i) {
				down[s] += down[s.With(i)]
			}
		}
	}
	orders = up[g.Full()]
	for _, s := range known {
		for i := range g.Players {
			if s.Has(i) || up[s] == 0 || down[s.With(i)] == 0 {
				continue
			}
			list = append(list, edge{s, i, up[s] * down[s.With(i)] / orders})
		}
	}
	return list, orders
}

// Shapley returns the Shapley value of each player, seed by seed, and over how many
// orders it is the mean. There may be none, if no chain of known combinations leads from
// good to bad; values is nil then.
func (g Game) Shapley() (values [][]float64, orders float64) {
	list, orders := g.edges()
	if orders == 0 {
		return nil, 0
	}
	values = make([][]float64, g.Players)
	for i := range values {
		values[i] = make([]float64, len(g.Values[0]))
	}
	for _, e := range list {
		for seed, d := range g.step(e.from, e.from.With(e.player)) {
			values[e.player][seed] += e.weight * d
		}
	}
	return values, orders
}

// Sampled returns the mean contribution of each player over some orders, seed by seed,
// and order by order as the mean over the seeds. Every combination on the way has to be
// known.
func (g Game) Sampled(orders [][]int) (bySeed, byOrder [][]float64) {
	bySeed, byOrder = make([][]float64, g.Players), make([][]float64, g.Players)
	seeds := len(g.Values[0])
	for i := range bySeed {
		bySeed[i], byOrder[i] = make([]float64, seeds), make([]float64, len(orders))
	}
	for n, order := range orders {
		s := Set(0)
		for _, player := range order {
			for seed, d := range g.step(s, s.With(player)) {
				bySeed[player][seed] += d / float64(len(orders))
				byOrder[player][n] += d / float64(seeds)
			}
			s = s.With(player)
		}
	}
	return bySeed, byOrder
}
