// Package skbuff holds what the kernel keeps per CPU around struct sk_buff: the caches
// of descriptors (napi_alloc_cache) and the lists of skbs that other cores have left for
// the core that allocated them (softnet_data.defer_list).
//
// Descriptors are interchangeable, so they are counted, not named; model.SKB is the
// packet. A cache is used in softirq context by its own core only, so what happens to
// it needs no look. A defer list is filled by other cores.
//
// The skbs that the host sends are not counted where they are allocated, which is part of
// the cost of tcp_ack; their free feeds the cache, as napi_consume_skb does. That v6.18
// leaves also those to the core that allocated them is left out, and so are its lists by
// NUMA node.
package skbuff
