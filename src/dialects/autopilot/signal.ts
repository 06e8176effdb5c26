/** ControlNodes carry the signals of controllers; Nodes carry those of workers and of all image bundles. */
import { nodes } from '../../kube/resources.ts';
import { controlNodes } from '../../signal/names.ts';
import { annotationSignal, type Carriers, foreignTargetsAmong } from '../annotation-signal.ts';

const CARRIERS: Carriers = {
  resourceOf: ({ role }) => (role === 'controller' ? controlNodes : nodes),
  all: [
    [controlNodes, 'controller'],
    [nodes, 'worker'],
  ],
};

export const signal = annotationSignal(CARRIERS);
export const foreignTargets = foreignTargetsAmong(CARRIERS);
