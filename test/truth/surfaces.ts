/** Reads every surface of the product at one time of a sequence. */
import { nodeRollouts, upgradePolicies } from '../../src/api/kinds.ts';
import type { NodeRolloutStatus } from '../../src/api/refit/node-rollout.ts';
import type { DashboardState } from '../../src/cli/dashboard/state.ts';
import type { StatusJson } from '../../src/cli/status/json-form.ts';
import { events } from '../../src/kube/resources.ts';
import { pageOf } from '../scenes/page.ts';
import type { Stage } from '../scenes/stage.ts';

/** What people see at one time. */
export interface Surfaces {
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  readonly json: StatusJson;
  /** The output of `refit status -o wide`. */
  readonly text: string;
  /** The output of `refit why`. */
  readonly why: string;
  /** The output of `refit history`. */
  readonly history: string;
  /** The output of `refit report -o markdown`. */
  readonly report: string;
  readonly page: DashboardState;
  /** The status of each NodeRollout, by the uid of its plan. */
  readonly records: ReadonlyMap<string, NodeRolloutStatus>;
  readonly events: readonly ToldEvent[];
  /** The messages of the conditions of all UpgradePolicies. */
  readonly policies: readonly string[];
  /** The messages of the leader to people, the oldest first. */
  readonly messages: readonly string[];
}

export interface ToldEvent {
  readonly reason: string;
  readonly kind: string;
  readonly name: string;
  readonly message: string;
  readonly count: number;
  /** The time at which it was told for the last time, in RFC 3339. */
  readonly last: string;
}

export async function readSurfaces(stage: Stage): Promise<Surfaces> {
  const { items: rollouts } = await stage.client.listAll(nodeRollouts);
  const { items } = await stage.client.list(events);
  const policies = (await stage.client.list(upgradePolicies)).items;
  return {
    now: stage.clock.now(),
    json: JSON.parse(await stage.answer('status', '-o', 'json')) as StatusJson,
    text: await stage.answer('status', '-o', 'wide'),
    why: await stage.answer('why'),
    history: await stage.answer('history'),
    report: await stage.answer('report', '-o', 'markdown'),
    page: await pageOf(stage),
    records: new Map(
      rollouts.flatMap(({ spec, status }) =>
        spec?.plan.uid === undefined || status === undefined ? [] : [[spec.plan.uid, status]],
      ),
    ),
    events: items.map(
      ({ reason = '', message = '', count = 1, involvedObject, lastTimestamp }) => ({
        reason,
        kind: involvedObject.kind ?? '',
        name: involvedObject.name ?? '',
        message,
        count,
        last: lastTimestamp ?? '',
      }),
    ),
    policies: policies.flatMap(({ status }) =>
      (status?.conditions ?? []).map(({ message = '' }) => message),
    ),
    messages: [...stage.journal.messages],
  };
}
