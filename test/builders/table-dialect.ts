/** Owns the smallest dialect there is, for tests of the engine: the plan holds its campaign, the object its observation. */
import type { Dialect } from '../../src/engine/dialect.ts';
import type { Campaign, Observation } from '../../src/engine/model.ts';
import { nodes } from '../../src/kube/resources.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { buildCampaign } from './campaigns.ts';
import { buildStage } from './stages.ts';

export interface TablePlan extends KubeObject {
  spec: Campaign;
  status?: Campaign;
}

/** Holds the observation of the object's only signal, as JSON. */
const ANSWER = 'example.com/answer';

export const tableDialect: Dialect<TablePlan> = {
  name: 'table',
  plans: { group: 'example.com', version: 'v1', kind: 'Plan', plural: 'plans', namespaced: false },
  objects: {
    controller: { group: 'example.com', version: 'v1', kind: 'Host', plural: 'hosts', namespaced: false },
    worker: nodes,
  },
  resolve: ({ spec, status }) => status ?? spec,
  project: (campaign, plan) => ({ ...plan, status: campaign }),
  endpoints: (world) => world.list('controller').map(({ metadata: { name } }) => ({ name, host: name })),
  others: () => [],
  signal: {
    read: ({ metadata }) => JSON.parse(metadata.annotations?.[ANSWER] ?? '{"kind":"none"}') as Observation,
    write: (object, _campaign, { target }) =>
      withAnswer(object, { kind: 'sent', attempt: target.since, since: target.since }),
  },
};

/** A new plan; its targets are pending since the beginning. */
export function buildTablePlan(targets: { controllers?: readonly string[]; workers?: readonly string[] }): TablePlan {
  const stages = [buildStage('controller', targets.controllers ?? []), buildStage('worker', targets.workers ?? [])];
  return {
    metadata: { name: 'plan', uid: 'plan-uid', resourceVersion: '1' },
    spec: buildCampaign(stages, { phase: 'new' }),
  };
}

export function withAnswer<T extends KubeObject>(object: T, answer: Observation): T {
  const annotations = { ...object.metadata.annotations, [ANSWER]: JSON.stringify(answer) };
  return { ...object, metadata: { ...object.metadata, annotations } };
}
