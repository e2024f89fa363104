package model

import (
	"fmt"

	"napisim/sim"
)

// Stage is a named piece of work that costs CPU time. Its cost comes from the
// platform; the code that does the work only names it.
type Stage uint8

// The stages, in the order of the receive path. Each is documented in stageText.
const (
	StageHardirqEntry Stage = iota
	StageHardirqExit
	StageTick
	StageIPI
	StageIRQHandler
	StageNAPISchedule
	StageNAPIQueue
	StageSoftirqEntry
	StageSoftirqExit
	StageTimerSoftirq
	StageHRTimer
	StageHRTimerStart
	StageNetRXAction
	StageNetRXTail
	StageNAPIPoll
	StageNAPIPollTail
	StageBusyPollStart
	StageBusyPollTurn
	StageBusyPollStop
	StageRingLook
	StageRXDescriptor
	StageDMASync
	StageDMASyncByte
	StageXDP
	StageSKBBuild
	StageSKBFree
	StagePageFast
	StagePageRing
	StagePageSlow
	StageRefill
	StageDoorbell
	StageTXCompletion
	StageCompleteStart
	StageNAPIComplete
	StageCompleteEnd
	StageIRQUnmask
	StageCsumByte
	StageGROReceive
	StageGROMerge
	StageGROFlush
	StageTunWrite
	StageVhostTX
	StageUDPSend
	StageVethXmit
	StageRPS
	StageBacklogEnqueue
	StageBacklogDequeue
	StageListReceive
	StageListSKB
	StageSublist
	StageNetifReceive
	StageIPReceive
	StageRouteLookup
	StageTCPReceive
	StageTCPSegment
	StageUDPReceive
	StageUDPSegment
	StageTCPAck
	StageDevXmit
	StageTXPost
	StageSockWakeup
	StageSockWait
	StageContextSwitch
	StageKsoftirqdWakeup
	StageKsoftirqdTurn
	StageSyscall
	StageRecvmsg
	StageRecvSKB
	StageCopyByte
	StageAppRead
	StageEpollCallback
	StageEpollEvent
	StageSlabAlloc
	StageSlabFree
	StageSlabBulkAlloc
	StageSlabBulkFree
	StageSKBDefer
	StageTCPLookup
	StageTCPAckInput
	StageTCPHandshake
	StageSendmsg
	StageSendByte
	StageTCPXmit
	StageGSOSegment
	StagePageFault
	StageEpollWait
	StageCsum
	StageRXCopy
	StageRefillBuffer
	StageXmitTail
	StageStreamSKB
	StageTCPSent
	StageTCPBacklog
	StagePageZero

	// NumStages is the number of stages.
	NumStages
)

// stageText gives each stage the name it has in platform files and says what work
// it stands for. perByte stages are charged per byte, the others per occurrence.
var stageText = [NumStages]struct {
	name, doc string
	perByte   bool
}{
	StageHardirqEntry:    {"hardirq_entry", "interrupt entry: exception, register save, irq_enter, flow handler", false},
	StageHardirqExit:     {"hardirq_exit", "irq_exit and return from the exception", false},
	StageTick:            {"tick", "timer interrupt: timekeeping, scheduler_tick", false},
	StageIPI:             {"ipi", "sending one inter-processor interrupt", false},
	StageIRQHandler:      {"irq_handler", "the driver's interrupt handler: read, mask and acknowledge over MMIO", false},
	StageNAPISchedule:    {"napi_schedule", "napi_schedule: state change, list insertion, raise", false},
	StageNAPIQueue:       {"napi_queue", "__napi_schedule, for the NAPI that napi_schedule_prep has taken", false},
	StageSoftirqEntry:    {"softirq_entry", "__do_softirq up to its first vector, or one restart", false},
	StageSoftirqExit:     {"softirq_exit", "leaving __do_softirq", false},
	StageTimerSoftirq:    {"timer_softirq", "one expired timer in the TIMER softirq", false},
	StageHRTimerStart:    {"hrtimer_start", "arming one hrtimer, the programming of the timer interrupt included", false},
	StageHRTimer:         {"hrtimer", "one expired hrtimer in the timer interrupt: queue, callback's start and end, programming the next", false},
	StageNetRXAction:     {"net_rx_action", "net_rx_action up to its first poll", false},
	StageNetRXTail:       {"net_rx_tail", "from the last look at the poll list to the end of the NET_RX vector", false},
	StageNAPIPoll:        {"napi_poll", "one poll without its frames: napi_poll and the driver's fixed part", false},
	StageNAPIPollTail:    {"napi_poll_tail", "from the driver's return to net_rx_action's next look at its lists", false},
	StageBusyPollStart:   {"busy_poll_start", "finding the NAPI of a busy loop (napi_by_id)", false},
	StageBusyPollTurn:    {"busy_poll_turn", "one turn of a busy loop without its poll: the clock, the tests for an end, cpu_relax", false},
	StageBusyPollStop:    {"busy_poll_stop", "giving back the NAPI of a busy loop, without the last poll", false},
	StageRingLook:        {"ring_look", "one look at a descriptor that turns out not to be filled", false},
	StageRXDescriptor:    {"rx_descriptor", "one filled descriptor: read, first touch of the data, advance", false},
	StageDMASync:         {"dma_sync", "DMA sync or unmap of one buffer, fixed part", false},
	StageDMASyncByte:     {"dma_sync_byte", "DMA sync per byte where caches are not coherent", true},
	StageXDP:             {"xdp", "running the XDP program on one frame", false},
	StageSKBBuild:        {"skb_build", "initialising one skb (build_skb), without the allocation of its descriptor", false},
	StageSKBFree:         {"skb_free", "freeing one skb, without its descriptor and its pages", false},
	StagePageFast:        {"page_fast", "one page through the page_pool cache", false},
	StagePageRing:        {"page_ring", "one page through the page_pool ring (either direction)", false},
	StagePageSlow:        {"page_slow", "one page from or to the page allocator, DMA map included", false},
	StageRefill:          {"refill", "making one descriptor ready for the NIC again", false},
	StageDoorbell:        {"doorbell", "one doorbell write over MMIO", false},
	StageTXCompletion:    {"tx_completion", "reclaiming one transmitted frame, skb free included but not its descriptor", false},
	StageCompleteStart:   {"complete_start", "napi_complete_done up to its test for an owner who keeps the NAPI", false},
	StageNAPIComplete:    {"napi_complete", "napi_complete_done", false},
	StageCompleteEnd:     {"complete_end", "the return of napi_complete_done, after the release of the NAPI or its refusal", false},
	StageIRQUnmask:       {"irq_unmask", "enabling the device's interrupt over MMIO", false},
	StageCsumByte:        {"csum_byte", "software checksum per byte, where the device does not verify it", true},
	StageGROReceive:      {"gro_receive", "dev_gro_receive for one packet: hash, flow match, header checks", false},
	StageGROMerge:        {"gro_merge", "skb_gro_receive: appending one segment, without the free of its descriptor", false},
	StageGROFlush:        {"gro_flush", "completing one held skb: lengths, checksum, hand-over", false},
	StageTunWrite:        {"tun_write", "tun_get_user of one frame without its copy and its skb", false},
	StageVhostTX:         {"vhost_tx", "vhost_net taking one frame from the ring of a guest", false},
	StageUDPSend:         {"udp_send", "sendmsg of one datagram down to the driver, without its copy and its skb", false},
	StageVethXmit:        {"veth_xmit", "veth_xmit of one frame", false},
	StageRPS:             {"rps", "get_rps_cpu: the lookup of the core that a packet goes to", false},
	StageBacklogEnqueue:  {"backlog_enqueue", "enqueue_to_backlog: lock, queue, raise", false},
	StageBacklogDequeue:  {"backlog_dequeue", "process_backlog: taking one skb off the backlog", false},
	StageListReceive:     {"list_receive", "netif_receive_skb_list_internal, fixed part per list", false},
	StageListSKB:         {"list_skb", "one packet of a list before the first is handed on: timestamp, list", false},
	StageSublist:         {"sublist", "one more sublist of a list: another protocol or interface", false},
	StageNetifReceive:    {"netif_receive", "__netif_receive_skb_core for one skb", false},
	StageIPReceive:       {"ip_receive", "ip_rcv, routing and local delivery for one skb", false},
	StageRouteLookup:     {"route_lookup", "what ip_receive costs more for an skb that cannot take over the route of the one before it in a list", false},
	StageTCPReceive:      {"tcp_receive", "tcp_v4_rcv and tcp_rcv_established for one skb", false},
	StageTCPSegment:      {"tcp_segment", "what a superframe costs more per merged segment in TCP and its queues", false},
	StageUDPReceive:      {"udp_receive", "udp_rcv: lookup, checks, queueing of one datagram", false},
	StageUDPSegment:      {"udp_segment", "udp_rcv_segment: taking one datagram out of a merged or chained skb", false},
	StageTCPAck:          {"tcp_ack", "building one ACK and sending it down to the driver", false},
	StageDevXmit:         {"dev_xmit", "ndo_start_xmit of one frame: map, descriptor, doorbell", false},
	StageTXPost:          {"tx_post", "posting one frame of several: map and descriptor, no doorbell", false},
	StageSockWakeup:      {"sock_wakeup", "sock_def_readable and try_to_wake_up of a sleeping reader", false},
	StageSockWait:        {"sock_wait", "a reader that goes to sleep in its socket and comes back, without the switch", false},
	StageKsoftirqdWakeup: {"ksoftirqd_wakeup", "waking ksoftirqd", false},
	StageKsoftirqdTurn:   {"ksoftirqd_turn", "ksoftirqd that goes to sleep, or comes back, without the switch", false},
	StageContextSwitch:   {"context_switch", "one switch between tasks, scheduler included", false},
	StageSyscall:         {"syscall", "entering and leaving the kernel for one system call", false},
	StageRecvmsg:         {"recvmsg", "recvmsg without its data: socket lock, checks, release", false},
	StageRecvSKB:         {"recv_skb", "taking one skb off a socket queue, without its free", false},
	StageCopyByte:        {"copy_byte", "copying one byte to user space, or within the kernel", true},
	StageAppRead:         {"app_read", "the application's own work per read call", false},
	StageEpollCallback:   {"epoll_callback", "ep_poll_callback: noting that a socket may be ready, without the wakeup", false},
	StageEpollEvent:      {"epoll_event", "epoll_wait for one socket on its ready list: poll, hand-over, back on the list", false},
	StageSlabAlloc:       {"slab_alloc", "allocating one skb descriptor from the slab (kmem_cache_alloc)", false},
	StageSlabFree:        {"slab_free", "freeing one skb descriptor to the slab (kmem_cache_free)", false},
	StageSlabBulkAlloc:   {"slab_bulk_alloc", "allocating one of many skb descriptors (kmem_cache_alloc_bulk)", false},
	StageSlabBulkFree:    {"slab_bulk_free", "freeing one of many skb descriptors (kmem_cache_free_bulk)", false},
	StageSKBDefer:        {"skb_defer", "leaving one skb to the core that allocated it: lock, list, its line in the cache", false},
	StageTCPLookup:       {"tcp_lookup", "tcp_v4_rcv up to the socket, or to its backlog", false},
	StageTCPAckInput:     {"tcp_ack_input", "tcp_ack of an acknowledgement that acknowledges something", false},
	StageTCPHandshake:    {"tcp_handshake", "handling one packet of a handshake, or taking a connection off a listener", false},
	StageSendmsg:         {"sendmsg", "sendmsg on a stream without its data: socket lock, checks, release", false},
	StageSendByte:        {"send_byte", "copying one byte from user space into new pages", true},
	StageTCPXmit:         {"tcp_xmit", "tcp_write_xmit of one skb down to the driver: headers, IP, qdisc", false},
	StageGSOSegment:      {"gso_segment", "cutting one segment off an skb in software", false},
	StagePageFault:       {"page_fault", "first access to one page of a process that is not mapped yet", false},
	StageEpollWait:       {"epoll_wait", "epoll_wait without its events", false},
	StageCsum:            {"csum", "software checksum of one packet, fixed part", false},
	StageRXCopy:          {"rx_copy", "copying a small frame to a new skb, so that its buffer stays in the ring", false},
	StageRefillBuffer:    {"refill_buffer", "what refill costs more for a descriptor whose buffer an skb has kept, without its page", false},
	StageXmitTail:        {"xmit_tail", "from the driver back to the caller of dev_queue_xmit: queueing discipline, locks", false},
	StageStreamSKB:       {"stream_skb", "allocating one skb of a write queue, without new pages", false},
	StageTCPSent:         {"tcp_sent", "what a sender does in TCP when a packet has left", false},
	StageTCPBacklog:      {"tcp_backlog", "putting one packet on the backlog of a socket that a process owns", false},
	StagePageZero:        {"page_zero", "what the first write to a page of a process costs beyond page_fault", false},
}

// String returns the stage's name in platform files.
func (s Stage) String() string { return stageText[s].name }

// Doc says what work the stage stands for.
func (s Stage) Doc() string { return stageText[s].doc }

// PerByte reports whether the stage is charged per byte.
func (s Stage) PerByte() bool { return stageText[s].perByte }

// ParseStage returns the stage of that name.
func ParseStage(name string) (Stage, error) {
	for s := range NumStages {
		if stageText[s].name == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("unknown cost stage %q", name)
}

// Costs is the price list of a core: simulated time per occurrence (or per byte)
// of each stage. Prices are integers, rounded once when the list is made, so that
// no float is on the time path.
type Costs [NumStages]sim.Time
