/** What people do to a plan while it runs: controls as annotations, each once, at any time. */
import type { Plan } from '../../src/api/autopilot/plan.ts';
import {
  ABORT_ANNOTATION,
  PAUSE_ANNOTATION,
  RETRY_ANNOTATION,
  RETRY_HOOKS_ANNOTATION,
  withRetry,
} from '../../src/engine/model/controls.ts';
import type { KubeObject } from '../../src/kube/resources.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import type { Order } from './cluster.ts';
import { SECOND_WAVE } from './cluster.ts';
import { recordedIn } from './plan-words.ts';
import { historyOf } from './ways-back.ts';

export interface Ordered {
  readonly label: string;
  /** True only for the end of a pause. People don't have to give any order, but somebody who paused a plan resumes it. */
  readonly fair: boolean;
  readonly plan: Plan;
}

/**
 * Represents the approval, which the product stores in the NodeRollout. In the model, the approval is a part of the
 * plan. This hides no case: a leader that decided before the approval did nothing, and a leader that waits for the
 * approval reads it again.
 */
const APPROVED_ANNOTATION = 'model/approved';

/** Says that the policy of the plan was changed. In the model, the policy is a part of the plan, as the approval is. */
const POLICY_ANNOTATION = 'model/policy';

const EDITED_ID = 'run-edited';
export const EDITED_VERSION = 'v1.36.4+k0s.0';
const APPLIED_AGAIN = 'plan-1-again';

export function isApproved(plan: Plan): boolean {
  return annotationOf(plan, APPROVED_ANNOTATION) !== undefined;
}

export function isPolicyChanged(plan: Plan): boolean {
  return annotationOf(plan, POLICY_ANNOTATION) !== undefined;
}

/** Returns those parts of the plan's NodeRollout that people write. */
export function decisionsOn(plan: Plan): KubeObject {
  const run = `${plan.metadata.uid}/${plan.spec.id}`;
  const approvals = isApproved(plan) ? [{ wave: SECOND_WAVE, by: 'anna', run }] : [];
  const history = historyOf(plan);
  const status = history.length > 0 ? { status: { history } } : {};
  const nodeRollout = { metadata: { name: 'any' }, spec: { approvals }, ...status };
  return nodeRollout;
}

/** Returns the orders that people may give now. `now` is in milliseconds since the Unix epoch. */
export function controlsOn(plan: Plan, controls: readonly Order[], now: number): Ordered[] {
  return controls.flatMap((order) => ORDERS[order](plan, now));
}

const ORDERS: Readonly<Record<Order, (plan: Plan, now: number) => Ordered[]>> = {
  abort(plan) {
    if (annotationOf(plan, ABORT_ANNOTATION) !== undefined) return [];
    return [
      {
        label: 'somebody aborts the plan',
        fair: false,
        plan: annotated(plan, ABORT_ANNOTATION, 'enough'),
      },
    ];
  },
  pause(plan) {
    const text = annotationOf(plan, PAUSE_ANNOTATION);
    if (text === 'false') return [];
    const next = text === undefined ? 'true' : 'false';
    const label = text === undefined ? 'somebody pauses the plan' : 'somebody lets the plan go on';
    return [{ label, fair: text !== undefined, plan: annotated(plan, PAUSE_ANNOTATION, next) }];
  },
  approve(plan) {
    if (isApproved(plan)) return [];
    return [
      {
        label: 'somebody approves the second wave',
        fair: false,
        plan: annotated(plan, APPROVED_ANNOTATION, 'true'),
      },
    ];
  },
  retryHooks(plan, now) {
    if (annotationOf(plan, RETRY_HOOKS_ANNOTATION) !== undefined) return [];
    const label = 'somebody orders to run the hooks of the plan again';
    return [
      { label, fair: false, plan: annotated(plan, RETRY_HOOKS_ANNOTATION, rfc3339(now - 1000)) },
    ];
  },
  editId(plan) {
    if (plan.spec.id === EDITED_ID) return [];
    const { spec, metadata } = plan;
    const edited = {
      ...plan,
      metadata: { ...metadata, generation: 2 },
      spec: { ...spec, id: EDITED_ID },
    };
    return [{ label: 'somebody edits the id of the plan', fair: false, plan: edited }];
  },
  editVersion: (plan) => editedOnce(plan, 'version', { version: EDITED_VERSION }),
  editBoth: (plan) =>
    editedOnce(plan, 'id and the version', { version: EDITED_VERSION, id: EDITED_ID }),
  reapply(plan) {
    const { uid, generation } = plan.metadata;
    if (uid === APPLIED_AGAIN) return [];
    const { annotations: _annotations, ...kept } = plan.metadata;
    const metadata = { ...kept, uid: APPLIED_AGAIN, ...(generation && { generation: 1 }) };
    const { status: _status, ...described } = plan;
    return [
      {
        label: 'somebody deletes the plan and applies it again',
        fair: false,
        plan: { ...described, metadata },
      },
    ];
  },
  changePolicy(plan) {
    if (isPolicyChanged(plan)) return [];
    const changed = annotated(plan, POLICY_ANNOTATION, 'changed');
    return [{ label: 'somebody changes the policy', fair: false, plan: changed }];
  },
  // These orders concern nodes, not the plan.
  unhold: () => [],
  loseNode: () => [],
  joinNode: () => [],
  upgradeByHand: () => [],
  /**
   * Orders another attempt for targets that failed at an earlier moment of the model's clock. Within one moment there
   * is no order of events.
   */
  retry(plan, now) {
    const text = annotationOf(plan, RETRY_ANNOTATION);
    const failed = recordedIn(plan.status).filter(
      ({ state, since, name }) =>
        state === 'SignalApplyFailed' &&
        Date.parse(since) < now &&
        text?.includes(`${name}@`) !== true,
    );
    return failed.map(({ name }) => {
      const ordered = withRetry(text, name, rfc3339(now - 1000));
      return {
        label: `somebody orders to try ${name} again`,
        fair: false,
        plan: annotated(plan, RETRY_ANNOTATION, ordered),
      };
    });
  },
};

/** Returns the edit of the plan, unless the plan has the edited version already. */
function editedOnce(
  plan: Plan,
  words: string,
  edit: { readonly version: string; readonly id?: string },
): Ordered[] {
  const { version } = edit;
  const { spec, metadata } = plan;
  if (spec.commands.some(({ k0supdate }) => k0supdate?.version === version)) return [];
  const commands = spec.commands.map((command) => ({
    ...command,
    ...(command.k0supdate && { k0supdate: { ...command.k0supdate, version } }),
  }));
  const generation = (metadata.generation ?? 1) + 1;
  const edited: Plan = {
    ...plan,
    metadata: { ...metadata, generation },
    spec: { ...spec, ...(edit.id !== undefined && { id: edit.id }), commands },
  };
  return [{ label: `somebody edits the ${words} of the plan`, fair: false, plan: edited }];
}

function annotationOf({ metadata }: Plan, name: string): string | undefined {
  return metadata.annotations?.[name];
}

function annotated(plan: Plan, name: string, text: string): Plan {
  const annotations = { ...plan.metadata.annotations, [name]: text };
  return { ...plan, metadata: { ...plan.metadata, annotations } };
}
