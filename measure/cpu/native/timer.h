/* The clocks, and the reference kernel that tells whether the machine itself has slowed. */
#ifndef TW_TIMER_H
#define TW_TIMER_H

#include <sys/types.h>

double wall_seconds(void);
double clock_seconds(int wall); /* wall clock, or CPU time of the calling thread */
double cpu_seconds_of(pid_t process); /* CPU time of all its threads, as the kernel tells it;
                                         infinity if it does not */
double reference_seconds(int wall); /* time of one run of the reference kernel */

#endif
