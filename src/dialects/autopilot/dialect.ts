/** Owns the k0s Autopilot front door: its Plans as campaigns of the engine. */
import { type Plan, plans } from '../../api/autopilot/plan.ts';
import type { Dialect } from '../../engine/dialect.ts';
import { nodes } from '../../kube/resources.ts';
import { type ControlNode, controlNodes } from '../../signal/names.ts';
import { project } from './project.ts';
import { resolve } from './resolve.ts';
import { annotationSignal, strangers } from './signal.ts';

export const autopilot: Dialect<Plan> = {
  name: 'autopilot',
  plans,
  objects: { controller: controlNodes, worker: nodes },
  resolve,
  project,
  endpoints: (world) =>
    world.list('controller').map((object) => ({
      name: object.metadata.name,
      host: (object as ControlNode).status?.addresses?.find(({ type }) => type === 'InternalIP')?.address,
    })),
  others: strangers,
  signal: annotationSignal,
};
