/** What the caches keep of Jobs and pods: what decisions read, and what is written back. Templates are most of their size. */

import { type ContainerStatus, type Job, type Pod, withoutAnnotations } from '../../kube/resources.ts';
import { defined } from '../../util/json.ts';
import { holds } from './conditions.ts';
import { isHeld } from './leader-drain.ts';
import { isPaused } from './signal.ts';
import { STAMP_ANNOTATION } from './stamps.ts';

/** A paused Job is written back as a whole, and the stamp of a failed one is compared. */
export function trimJob(job: Job): Job {
  if (isPaused(job) || isHeld(job) || holds(job, 'Failed')) return job;
  const { template: _t, selector: _s, ...spec } = job.spec ?? {};
  return { ...withoutAnnotations(job, STAMP_ANNOTATION), spec };
}

/** It is never written. */
export function trimPod({ metadata, status = {} }: Pod): Pod {
  const { name, namespace = '', uid = '', resourceVersion = '', creationTimestamp = '' } = metadata;
  const { ownerReferences = [] } = metadata;
  const { phase = '', reason, message, conditions = [], initContainerStatuses = [], containerStatuses = [] } = status;
  return {
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp, ownerReferences },
    status: {
      phase,
      ...defined({ reason, message }),
      conditions: conditions.filter(({ type }) => type === 'PodScheduled'),
      initContainerStatuses: initContainerStatuses.map(trimStatus),
      containerStatuses: containerStatuses.map(trimStatus),
    },
  };
}

function trimStatus({ name, state: { waiting } = {} }: ContainerStatus): ContainerStatus {
  return { name, state: waiting ? { waiting } : {} };
}
