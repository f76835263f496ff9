/* Ends the processes that fell to this one when their parents died. See reap.c. */
#ifndef TW_REAP_H
#define TW_REAP_H

#include <sys/types.h>

/* Makes orphans among the descendants of this process its children, whatever session they are in. */
void adopt_orphans(void);

/* Kills and reaps the children that `spared` does not know (NULL: all), and those they leave to
   us, for a second or two at most; returns how many still were there in the end. */
int end_children(int (*spared)(pid_t));

#endif
