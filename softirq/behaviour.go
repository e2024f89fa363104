package softirq

import (
	"napisim/model"
	"napisim/model/host"
	"napisim/softirq/rps"
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
	// Threads says that NAPI threads, too, send the interrupts of RPS and free deferred skbs
	// behind each poll, as net_rx_action does.
	Threads bool
}

// napiSchedules is the table of napi_schedule behaviours.
var napiSchedules = []NAPIScheduleBehaviour{
	{"always_raise", raiseAlways, (*Softnet).netRXAction, false},
	{"skip_in_net_rx_action", raiseUnlessInNetRXAction, (*Softnet).netRXActionRestart, true},
	{"skip_and_wake", raiseAndWakeUnlessInNetRXAction, (*Softnet).netRXActionRestart, true},
	{"clear_flag_always", raiseUnlessInNetRXAction, (*Softnet).netRXActionClearFlag, true},
}

// NAPISchedulePrepBehaviour is one form of napi_schedule_prep.
type NAPISchedulePrepBehaviour struct {
	// Name selects the behaviour in a scenario.
	Name string
	// Prep takes the NAPI for the caller and reports whether it could; the caller has
	// looked.
	Prep func(*NAPI) bool
}

// napiSchedulePreps is the table of napi_schedule_prep behaviours.
var napiSchedulePreps = []NAPISchedulePrepBehaviour{
	{"lost", prepLosing},
	{"missed", prepMissing},
}

// NAPICompleteBehaviour is one form of napi_complete_done with the napi_watchdog that goes
// with it.
type NAPICompleteBehaviour struct {
	// Name selects the behaviour in a scenario.
	Name string
	// Done gives up the NAPI after a poll of so many frames; it reports whether the
	// driver may enable its interrupt.
	Done func(n *NAPI, workDone int) bool
	// TimerNeedsHeld says that the timer schedules only a NAPI whose GRO holds packets.
	TimerNeedsHeld bool
	// Defers says that the form knows napi_defer_hard_irqs.
	Defers bool
}

// napiCompletes is the table of napi_complete behaviours.
var napiCompletes = []NAPICompleteBehaviour{
	{"always_unmask", completeUnmasking, true, false},
	{"hold", completeHolding, true, false},
	{"flush_old", completeFlushingOld, true, false},
	{"defer_hard_irqs", completeDeferring, false, true},
}

// NAPIThreadedBehaviour says how a NAPI is scheduled to a thread of its own.
type NAPIThreadedBehaviour struct {
	// Name selects the behaviour in a scenario.
	Name string
	// Most is the most that can be asked for.
	Most Threading
	// Wake is what ____napi_schedule does for a NAPI with a thread; it reports whether it
	// has one. Interrupts are off, and the caller has looked.
	Wake func(*Softnet, *NAPI) bool
	// WokenOwns says that a thread which has been woken owns its NAPI.
	WokenOwns bool
}

// napiThreadeds is the table of napi_threaded behaviours.
var napiThreadeds = []NAPIThreadedBehaviour{
	{"none", Unthreaded, noThread, false},
	{"if_running", Threaded, wakeThreadIfRunning, true},
	{"always", Threaded, wakeThread, false},
	{"busy_poll", ThreadedBusyPoll, wakeThread, false},
}

// BusyPollBehaviour is one form of napi_busy_loop, with what the kernel of its time lets
// applications ask for.
type BusyPollBehaviour struct {
	// Name selects the behaviour in a scenario.
	Name string
	// Loop polls a NAPI in the context of a task on the core of the Softnet; the caller has
	// looked.
	Loop func(*Softnet, *NAPI, *host.BusyWait)
	// FlushDeferred says that each turn frees the skbs that other cores have left to this
	// one (seen in v6.12).
	FlushDeferred bool
}

// busyPolls is the table of busy_poll behaviours.
var busyPolls = []BusyPollBehaviour{
	{"each_poll", busyLoopEachPoll, false},
	{"owned", busyLoopOwning, false},
	{"prefer", busyLoopOwning, false},
	{"epoll_params", busyLoopOwning, true},
	{"irq_suspend", busyLoopOwning, true},
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
	{"defer_always", deferAlways},
	{"defer_while_running", deferWhileRunning},
	{"defer_unless_parked", deferUnlessParked},
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

// NetifRxBehaviour is the pair of netif_rx and netif_rx_ni.
type NetifRxBehaviour struct {
	// Name selects the behaviour in a scenario.
	Name string
	// Rx is netif_rx, RxNI is netif_rx_ni or what took its place.
	Rx, RxNI func(*Softnet, *rps.Queue, skb)
}

// netifRxs is the table of netif_rx behaviours.
var netifRxs = []NetifRxBehaviour{
	{"split_ni", (*Softnet).netifRxInternal, netifRxNI},
	{"universal", netifRxAnywhere, netifRxAnywhere},
}

// NAPIScheduleNames lists the values of the napi_schedule behaviour, like the other
// lists in the order of the kernel's history.
func NAPIScheduleNames() []string {
	return model.NamesOf(napiSchedules, func(b NAPIScheduleBehaviour) string { return b.Name })
}

// NAPISchedulePrepNames lists the values of the napi_schedule_prep behaviour.
func NAPISchedulePrepNames() []string {
	return model.NamesOf(napiSchedulePreps, func(b NAPISchedulePrepBehaviour) string { return b.Name })
}

// NAPICompleteNames lists the values of the napi_complete behaviour.
func NAPICompleteNames() []string {
	return model.NamesOf(napiCompletes, func(b NAPICompleteBehaviour) string { return b.Name })
}

// NAPIThreadedNames lists the values of the napi_threaded behaviour.
func NAPIThreadedNames() []string {
	return model.NamesOf(napiThreadeds, func(b NAPIThreadedBehaviour) string { return b.Name })
}

// BusyPollNames lists the values of the busy_poll behaviour.
func BusyPollNames() []string {
	return model.NamesOf(busyPolls, func(b BusyPollBehaviour) string { return b.Name })
}

// KsoftirqdNames lists the values of the ksoftirqd behaviour.
func KsoftirqdNames() []string {
	return model.NamesOf(ksoftirqds, func(b KsoftirqdBehaviour) string { return b.Name })
}

// GRONormalNames lists the values of the gro_normal behaviour.
func GRONormalNames() []string {
	return model.NamesOf(groNormals, func(b GRONormalBehaviour) string { return b.Name })
}

// NetifRxNames lists the values of the netif_rx behaviour.
func NetifRxNames() []string {
	return model.NamesOf(netifRxs, func(b NetifRxBehaviour) string { return b.Name })
}
