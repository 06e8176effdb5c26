/** What is reported of one plan at a time. */
import type { KubeObject } from '../../kube/resources.ts';
import type { Assessment } from '../assess/assess.ts';

/** One assessment of a plan. */
export interface Turn {
  readonly plan: KubeObject;
  readonly assessment: Assessment;
}
