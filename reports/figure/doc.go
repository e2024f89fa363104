// Package figure draws what was published beside what was simulated: for each metric a
// block, for each variant a pale bar of the published figure over a dark one of the
// simulated mean, with the change against the base to the right of both.
//
// Bars are linear and start at 0, each metric on its own scale. On a logarithmic axis
// their lengths would mean nothing, and a 0, which simulated counters often are, would
// have no place. Every bar carries its number and unit, so there is no axis to read off.
// The two shades differ in lightness and stay apart in print; colour repeats, it does
// not tell.
//
// [Waterfall] draws how one mean becomes another, in the steps of a bisection.
//
// A figure is the same to the byte whenever it is written: it holds no date, and the
// fonts are those that come with gonum/plot.
package figure
