/** The toy dialect of CONTRIBUTING.md: its plan is a ConfigMap with a colour for each Node. */
import type { Dialect } from '../../src/engine/contract/dialect.ts';
import type { Role, Rollout, Stage } from '../../src/engine/model/rollout.ts';
import { isRelevant } from '../../src/engine/snapshot/predicates.ts';
import { type KubeObject, nodes } from '../../src/kube/resources.ts';

export const toy: Dialect<
  KubeObject & { data: Record<'colour' | 'first' | 'rest' | 'atOnce' | 'record', string> }
> = {
  name: 'toy',
  plans: { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true },
  planObjects: { fieldSelector: 'metadata.name=painting' },
  watched: [{ resource: nodes, isRelevant }],
  resolve({ metadata: { name, uid = '', creationTimestamp: created = '' }, data }) {
    if (data.record) return JSON.parse(data.record) as Rollout;
    const source = { apiVersion: 'v1', kind: 'ConfigMap', name, uid, created };
    const common = {
      command: 0,
      maxInFlight: Number(data.atOnce),
      version: data.colour,
      forced: false,
    };
    const pending = (key: string) =>
      ({ key, name: key, state: 'pending', since: created }) as const;
    const stage = (role: Role, names: string[]): Stage => ({
      id: role,
      role,
      ...common,
      targets: names.map(pending),
    });
    const stages = [
      stage('controller', data.first.split(' ')),
      stage('worker', data.rest.split(' ')),
    ];
    return { source, id: uid, phase: 'new', blocked: false, stages, problems: [] };
  },
  project: (rollout, plan) => ({
    ...plan,
    data: { ...plan.data, record: JSON.stringify(rollout) },
  }),
  objectOf: (_stage, { name }, world) => world.get(nodes, name),
  endpoints: () => [],
  signal: {
    read(world, rollout, _stage, { name }) {
      const [id, attempt = '', , answer] =
        world.get(nodes, name)?.metadata.annotations?.['paint']?.split(' ') ?? [];
      if (id !== rollout.id) return { kind: 'none' };
      const about = { attempt, since: attempt, message: `the paint is ${answer}` };
      if (answer === undefined) return { kind: 'sent', ...about };
      return { kind: answer === 'dry' ? 'succeeded' : 'failed', ...about };
    },
    touches(world, _rollout, _stage, { name }) {
      const object = world.get(nodes, name);
      return object && { resource: nodes, object };
    },
    send(world, { id }, { stage, target: { name, since } }) {
      const object = structuredClone(world.get(nodes, name));
      const paint = `${id} ${since} ${stage.version}`;
      if (object) object.metadata.annotations = { ...object.metadata.annotations, paint };
      return object && { kind: 'replace', resource: nodes, object };
    },
  },
};
