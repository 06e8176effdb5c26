/** Owns which objects carry the signals of Plans: ControlNodes for controllers; Nodes for workers, and for all image bundles. */
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
