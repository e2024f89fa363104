// Package bisect says which of the differences between two kernels moves a metric.
//
// # The game
//
// Two kernels differ in n behaviours, the players. A combination is a kernel that takes
// some of them from the bad side and the others from the good one; a [Game] holds what
// was measured for combinations, seed by seed. A real bisection can only walk along the
// history. A simulator can build every combination, so that the change of the metric can
// be divided among the players: the Shapley value of a player is what it adds on average
// over all orders in which the good kernel can be turned into the bad one (Shapley, A
// value for n-person games, 1953). The values sum to the change, equal players get equal
// values, and one that never matters gets 0.
//
// # Which combinations
//
// If all 2^n fit into the budget they are all run ([All]). Otherwise each difference is
// first taken alone: added to the good kernel and taken out of the bad one
// ([OneAtATime]). Those that move the metric by that ([Movers]) stay players, the others
// become one player together ([Groups]), so that the values still sum to the change; if
// that player is cleared so are all within it. Where even the combinations of these are
// too many, random orders are drawn in pairs, each with its reverse ([SampleOrders]).
//
// # Intervals
//
// All combinations meet the same seeds, and each seed gives one Shapley value of each
// player; the interval is Student's over these. The error of sampled orders is added.
package bisect
