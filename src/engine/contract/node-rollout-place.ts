/** Says where the NodeRollout of a plan is. */
import { hash } from 'node:crypto';
import type { KubeObject } from '../../kube/resources.ts';
import { defined } from '../../util/json.ts';
import type { Dialect } from './dialect.ts';

/** The most characters in the name of an object. */
const LONGEST_NAME = 253;

export interface Place {
  readonly namespace: string;
  /** The name of the NodeRollout. */
  readonly name: string;
  /** The object that people regard as the plan. */
  readonly subject: { readonly name: string; readonly namespace?: string };
}

/** Returns the place of the NodeRollout of the plan; undefined if the plan has no NodeRollout. */
export function placeOf(dialect: Dialect, plan: KubeObject): Place | undefined {
  const { nodeRollouts: feature } = dialect;
  const subject = feature?.subjectOf ? feature.subjectOf(plan) : plan.metadata;
  const namespace = subject?.namespace ?? feature?.namespace;
  if (subject === undefined || namespace === undefined) return undefined;
  return placeOfSubject(dialect.name, namespace, subject);
}

/** Returns the place of the NodeRollout of the plan that people regard as this object. */
export function placeOfSubject(
  dialect: string,
  namespace: string,
  subject: {
    readonly name: string;
    readonly namespace?: string;
    readonly kind?: string | undefined;
  },
): Place {
  const named = defined({ name: subject.name, namespace: subject.namespace });
  const whole = [dialect, subject.kind?.toLowerCase() ?? [], subject.name].flat().join('-');
  if (whole.length <= LONGEST_NAME) return { namespace, name: whole, subject: named };
  const digest = hash('sha256', whole).slice(0, 8);
  const kept = whole.slice(0, LONGEST_NAME - digest.length - 1);
  return { namespace, name: `${kept}-${digest}`, subject: named };
}
