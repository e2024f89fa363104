package softirq

import (
	"fmt"
	"slices"
)

// NAPIScheduleBehaviour is one form of ____napi_schedule together with the form of
// net_rx_action that goes with it. They are one behaviour, because a raise rule
// with the wrong tail strands NAPIs or changes nothing.
type NAPIScheduleBehaviour struct {
	// Name selects the behaviour in a scenario.
	Name string
	// Raise is what ____napi_schedule does after it has queued a NAPI; interrupts are off.
	Raise func(*Softnet)
	// NetRXAction is the handler of the NET_RX vector.
	NetRXAction func(*Softnet)
}

// napiSchedules is the table of napi_schedule behaviours.
var napiSchedules = []NAPIScheduleBehaviour{
	{"always_raise", raiseAlways, (*Softnet).netRXAction},
	{"skip_in_net_rx_action", raiseUnlessInNetRXAction, (*Softnet).netRXActionRestart},
	{"clear_flag_always", raiseUnlessInNetRXAction, (*Softnet).netRXActionClearFlag},
}

// KsoftirqdBehaviour says what irq_exit and local_bh_enable do with pending
// softirqs while ksoftirqd is running.
type KsoftirqdBehaviour struct {
	// Name selects the behaviour in a scenario.
	Name string
	// Defer reports whether the softirqs are left to ksoftirqd.
	Defer func(*Softnet) bool
}

// ksoftirqds is the table of ksoftirqd behaviours.
var ksoftirqds = []KsoftirqdBehaviour{
	{"inline", neverDefer},
	{"defer_while_running", deferWhileRunning},
}

// GRONormalBehaviour says which packets wait on a NAPI's list of packets for the
// stack, and how they count towards gro_normal_batch.
type GRONormalBehaviour struct {
	// Name selects the behaviour in a scenario.
	Name string
	// Receive passes on a packet of napi_gro_receive that GRO does not keep, Frags one
	// of napi_gro_frags.
	Receive, Frags func(*NAPI, skb)
	// Complete passes on a superframe that GRO has completed.
	Complete func(*NAPI, skb)
	// ListFirst says that the end of a poll passes the list on before it flushes GRO,
	// not after.
	ListFirst bool
	// BusyPoll says that the busy-poll loop passes the list on after each poll.
	BusyPoll bool
}

// groNormals is the table of gro_normal behaviours.
var groNormals = []GRONormalBehaviour{
	{"single", deliverOne, deliverOne, deliverOne, false, false},
	{"rfc_2019", deliverOne, listBySKB, deliverOne, true, false},
	{"frags_list_5_4_0", deliverOne, listBySKB, deliverOne, true, true},
	{"frags_list", deliverOne, listBySKB, listBySKB, false, true},
	{"skb_list", listBySKB, listBySKB, listBySKB, false, true},
	{"skb_list_segments", listBySKB, listBySKB, listBySegments, false, true},
	{"unlimited", listToTheEnd, listToTheEnd, listToTheEnd, false, true},
}

// NAPIScheduleNames lists the values of the napi_schedule behaviour, like the other
// lists in the order of the kernel's history.
func NAPIScheduleNames() []string {
	return names(napiSchedules, func(b NAPIScheduleBehaviour) string { return b.Name })
}

// KsoftirqdNames lists the values of the ksoftirqd behaviour.
func KsoftirqdNames() []string {
	return names(ksoftirqds, func(b KsoftirqdBehaviour) string { return b.Name })
}

// GRONormalNames lists the values of the gro_normal behaviour.
func GRONormalNames() []string {
	return names(groNormals, func(b GRONormalBehaviour) string { return b.Name })
}

func names[T any](table []T, name func(T) string) []string {
	var all []string
	for _, b := range table {
		all = append(all, name(b))
	}
	return all
}

// find returns the entry of that name.
func find[T any](table []T, name func(T) string, want, what string) (T, error) {
	if i := slices.IndexFunc(table, func(b T) bool { return name(b) == want }); i >= 0 {
		return table[i], nil
	}
	var none T
	return none, fmt.Errorf("%s: unknown behaviour %q", what, want)
}
