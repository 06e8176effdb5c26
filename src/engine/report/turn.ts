/** The plan that a report is about, with its assessment. */
import type { KubeObject } from '../../kube/resources.ts';
import type { Assessment } from '../assess/assess.ts';

/** A plan in one turn, with the assessment of that turn. */
export interface Turn {
  readonly plan: KubeObject;
  readonly assessment: Assessment;
}
