/** One Plan and its only node `a`, with a running Job. The functions simulate actions of people and of Kubernetes. */
import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../../src/api/kinds.ts';
import { hashLabelOf, VERSION_LABEL } from '../../../src/dialects/cattle/plan/names.ts';
import { type Job, jobs, type Node, nodes } from '../../../src/kube/resources.ts';
import { later, MINUTE } from '../clock/times.ts';
import { buildCattlePlan, type CattleSpec } from './cattle-plans.ts';
import { buildCattleScene } from './cattle-scenes.ts';

const LABEL = hashLabelOf('plan');

export async function beginOnOneNode(spec: Partial<CattleSpec> = {}) {
  const scene = buildCattleScene([buildCattlePlan('plan', { version: 'v1', ...spec })], ['a']);
  const { api, look, made } = scene;
  const node = (): Node => api.read(nodes, 'a');
  const change = (changed: (node: Node) => Node): void => api.change(nodes, 'a', changed);
  const failed = { type: 'Failed', status: 'True', lastTransitionTime: later(MINUTE) } as const;
  let generation = 1;
  await look();
  return {
    ...scene,
    edit: (more: Partial<CattleSpec>): void =>
      api.change(cattlePlans, 'plan', ({ status = {} }: CattlePlan) => {
        const { metadata, ...built } = buildCattlePlan('plan', { version: 'v1', ...spec, ...more });
        return { ...built, metadata: { ...metadata, generation: ++generation }, status };
      }),
    cordon: (unschedulable: boolean): void =>
      change((old) => ({ ...old, spec: { ...old.spec, unschedulable } })),
    ready: (status: 'True' | 'False'): void =>
      change((old) => {
        const conditions = [{ type: 'Ready', status, lastTransitionTime: later(0) }];
        return { ...old, status: { ...old.status, conditions } };
      }),
    /** Writes the hash of the last Job to the label of the node, or removes this label. */
    label: (isThere: boolean): void =>
      change(({ metadata, ...old }) => {
        const { [LABEL]: _, ...labels } = metadata.labels ?? {};
        const hash = made().at(-1)?.metadata.labels?.[LABEL] ?? '';
        return {
          ...old,
          metadata: { ...metadata, labels: isThere ? { ...labels, [LABEL]: hash } : labels },
        };
      }),
    isDone: () => node().metadata.labels?.[LABEL] !== undefined,
    isCordoned: () => node().spec?.unschedulable === true,
    applying: () => api.read<CattlePlan>(cattlePlans, 'plan').status?.applying ?? [],
    fail: (): void => {
      for (const job of made())
        if (!job.status) api.put<Job>(jobs, { ...job, status: { conditions: [failed] } });
    },
    /** Deletes the Jobs of this version, or all Jobs, as Kubernetes or a person may do. */
    lose: (version?: string): void => {
      for (const { metadata } of made())
        if (version === undefined || metadata.labels?.[VERSION_LABEL] === version)
          api.remove(jobs, metadata.name);
    },
    /** Returns the versions of the Jobs that have not ended. */
    versions: () =>
      made().flatMap(({ metadata, status }) =>
        status ? [] : (metadata.labels?.[VERSION_LABEL] ?? ''),
      ),
  };
}
