// Package faults holds what is wrong with a scenario: each fault with its place in
// a file, the path of the field and, where one is near, the word that was probably
// meant.
//
// Faults are collected, not returned one by one: a person mends a file once, and a
// list of everything that is wrong with it is worth more than the first entry.
package faults
