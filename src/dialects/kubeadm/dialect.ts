/** Owns the kubeadm front door: the recorded request as a campaign of the engine, and its signal over SSH. */

import type { Dialect, Signal, World } from '../../engine/dialect.ts';
import type { Campaign, Observation, Stage, Target } from '../../engine/model.ts';
import { because } from '../../engine/reasons.ts';
import { matters as matterOfTargets } from '../../engine/relevance.ts';
import { sourceOf } from '../../engine/source.ts';
import { nodes } from '../../kube/resources.ts';
import type { KubeObject, Node } from '../../kube/types.ts';
import { rfc3339 } from '../../util/clock.ts';
import { type ConfigMap, configMaps, PLACE, type Request, recordOf, requestOf, withRecord } from './plan-object.ts';
import { CONTROL_PLANE } from './preflight.ts';
import { reportOn, uncordoned } from './report.ts';

/** Whoever works on hosts; all that `refit status` and the like can do is look. */
export interface Works {
  /** True while this process works on the target. */
  isAt(target: Target): boolean;
  /** Resolves once it is begun; begins nothing where it is under way. */
  begin(work: Work): Promise<void>;
}

export interface Work {
  /** The campaign's uid. */
  readonly campaign: string;
  readonly target: Target;
  readonly version: string;
  /** Of `kubeadm upgrade`. */
  readonly verb: 'apply' | 'node';
}

const LEADER = 'leader';

export function kubeadmDialect(works: Works | undefined): Dialect<ConfigMap> {
  return {
    name: 'kubeadm',
    plans: configMaps,
    namespace: PLACE.namespace,
    fieldSelector: `metadata.name=${PLACE.name}`,
    recordedIn: 'object',
    watched: [{ resource: nodes, matters }],
    resolve,
    project: (campaign, plan) => withRecord(plan, campaign),
    objectOf: (_stage, { name }, world) => world.get(nodes, name),
    endpoints: (world) =>
      world
        .list(nodes)
        .filter(({ metadata }) => metadata.labels?.[CONTROL_PLANE] !== undefined)
        .map(({ metadata: { name }, status }) => ({
          name,
          host: status?.addresses?.find(({ type }) => type === 'InternalIP')?.address,
        })),
    signal: sshSignal(works),
  };
}

/** For whoever looks and never touches a host. */
export const kubeadmPlansSeen: Dialect = kubeadmDialect(undefined);

/** Beside what matters of every target: a kubelet proves itself by its version, and an operator may cordon. */
function matters(before: KubeObject, after: KubeObject): boolean {
  return (
    matterOfTargets(before, after) ||
    versionOf(before) !== versionOf(after) ||
    (before as Node).spec?.unschedulable !== (after as Node).spec?.unschedulable
  );
}

function versionOf(node: Node | undefined): string | undefined {
  return node?.status?.nodeInfo?.kubeletVersion;
}

function resolve(plan: ConfigMap, _world: World, now: number): Campaign {
  const request = requestOf(plan);
  const recorded = recordOf(plan);
  const message = `ConfigMap ${PLACE.namespace}/${plan.metadata.name} holds no request of \`refit kubeadm apply\``;
  return {
    source: sourceOf(configMaps, plan),
    id: request?.version ?? '',
    phase: 'new',
    blocked: false,
    stages: request ? stagesOf(request, now) : [],
    ...recorded,
    problems: request ? [] : [because('InvalidPlan', message)],
  };
}

function stagesOf(request: Request, now: number): Stage[] {
  const stage = (id: string, role: Stage['role'], maxInFlight: number, names: readonly string[]): Stage => ({
    id,
    command: 0,
    role,
    maxInFlight,
    version: request.version,
    forced: false,
    targets: names.map((name) => ({ key: `${id}/${name}`, name, state: 'pending', since: rfc3339(now) })),
  });
  return [
    stage(LEADER, 'controller', 1, request.leader),
    stage('followers', 'controller', 1, request.followers),
    stage('workers', 'worker', request.concurrent, request.workers),
  ];
}

function sshSignal(works: Works | undefined): Signal {
  return {
    read: (world, campaign, stage, target) => observe(world.get(nodes, target.name), works, campaign, stage, target),
    send(_world, campaign, { stage, target }) {
      if (!works) return undefined;
      const verb = stage.id === LEADER ? 'apply' : 'node';
      const work: Work = { campaign: campaign.source.uid, target, version: stage.version, verb };
      return { kind: 'begin', begin: async () => await works.begin(work) };
    },
    finish(world, { source }, _stage, { name }) {
      const node = world.get(nodes, name);
      const object = node && uncordoned(node, source.uid);
      return object && { kind: 'replace', resource: nodes, object };
    },
  };
}

/** Work that the process which must do it does not do was cut off with an earlier process: it is to be begun again. */
function observe(
  node: Node | undefined,
  works: Works | undefined,
  { source }: Campaign,
  stage: Stage,
  target: Target,
): Observation {
  const report = reportOn(node);
  if (!report || report.campaign !== source.uid || report.target !== target.key) {
    return works?.isAt(target) ? { kind: 'sent', attempt: target.since, since: target.since } : { kind: 'none' };
  }
  const { attempt, since, step, from, spent, state, message = '' } = report;
  const seen = { attempt, since, report: { from, spent } };
  if (state === 'failed') return { kind: 'failed', message, ...seen };
  if (state === 'finished' && versionOf(node) === stage.version) return { kind: 'succeeded', ...seen };
  if (state === 'working' && works && !works.isAt(target)) return { kind: 'none' };
  return { kind: 'working', step, ...seen };
}
