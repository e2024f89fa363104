// Package text shows a result document on a terminal, and tables of names and
// descriptions as text, Markdown or CSV.
//
// [Render] answers the questions of a user in the order in which they are asked:
// how much arrived, what did it cost in interrupts, softirqs and polls, how late
// was it, what were the cores busy with, where were frames lost. Then it says how
// far to trust the answer: published numbers beside the predictions, and which
// share of the CPU time rests on costs that nobody has measured.
//
// With several seeds each number is a mean with its 95 % interval; histograms are
// pooled, because percentiles must not be averaged.
//
// Nothing is said by colour alone, and there is none unless the caller asks.
package text
