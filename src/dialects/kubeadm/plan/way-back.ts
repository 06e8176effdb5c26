/**
 * Finds out which hosts can go back to the patch version that they ran before the last upgrade. Workers go back first,
 * and then the control plane. Only the record of that upgrade proves which version a host ran.
 */
import type { ConfigMap, Node } from '../../../kube/resources.ts';
import { ownMember } from '../../../util/own-member.ts';
import {
  compareVersions,
  isSameMinor,
  minorsBetween,
  parseVersion,
} from '../../../util/version.ts';
import { type Finding, hard } from '../../../versions/findings.ts';
import { textOf } from '../../../versions/kubeadm-rules.ts';
import type { HostFacts } from '../host/probe.ts';
import { controlPlaneOf, type Manifest } from './manifest.ts';
import {
  type Before,
  beforeOf,
  openRequest,
  PLACE,
  type Request,
  requestFor,
} from './plan-object.ts';
import { isDone, nodeNamed, versionsOn } from './survey-nodes.ts';

/** The parts of a survey that decide which hosts can go back. */
interface Survey {
  readonly manifest: Manifest;
  readonly hosts: readonly HostFacts[];
  readonly nodes: readonly Node[];
  readonly clusterVersion: string | undefined;
  readonly plan: ConfigMap | undefined;
}

export interface GoingBack {
  readonly request: Request;
  /**
   * The hosts that do not go back, although they have another version: the keys are their names, the values are the
   * reasons.
   */
  readonly stays: ReadonlyMap<string, string>;
  /** True if no control-plane host goes back, so that the API servers keep their version. */
  readonly isOfWorkersAlone: boolean;
  readonly findings: readonly Finding[];
}

/**
 * Returns the hosts that go back to the version of the manifest, the hosts that stay at their version, and the problems
 * that prevent going back.
 */
export function goingBackOf(survey: Survey): GoingBack {
  const { manifest, hosts, nodes, clusterVersion } = survey;
  const ran = beforeOf(survey.plan);
  const open = hosts.filter((facts) => !isDone(facts, nodes, manifest.version));
  const stays = new Map(
    open.flatMap((facts) => {
      const why = whyItStays(facts, survey, ran);
      return why === undefined ? [] : [[facts.host.name, why] as const];
    }),
  );
  const moving = open.filter(({ host }) => !stays.has(host.name));
  const controllers = controlPlaneOf(manifest).map(({ name }) => name);
  const stuck = controllers.filter((name) => stays.has(name));
  const isOfWorkersAlone = stuck.length === controllers.length;
  const first = controllers[0] ?? '';
  const done = new Set(manifest.hosts.map(({ name }) => name));
  for (const { host } of moving) done.delete(host.name);
  // If kubeadm was interrupted after it replaced the static pods and before it recorded the version of the cluster, the
  // first host is not done.
  const isRecorded = clusterVersion === manifest.version || isOfWorkersAlone;
  if (!isRecorded) done.delete(first);
  const leaderIsDone = isRecorded && done.has(first);
  const request = requestFor(manifest, { done, leaderIsDone, isMinor: false });
  const left = [...stays].map(([name, why]) => `${name} ${why}`);
  return {
    request: { ...request, back: true },
    stays,
    isOfWorkersAlone,
    findings: findingsOf(survey, ran, { left, stuck, moves: moving.length > 0, isOfWorkersAlone }),
  };
}

function whyItStays(
  facts: HostFacts,
  { nodes, manifest }: Survey,
  ran: Before | undefined,
): string | undefined {
  const { name } = facts.host;
  const own = entryOf(ran, name, nodeNamed(name, nodes)?.metadata.uid);
  if (ran === undefined || own === undefined) return 'has no record of what it ran before';
  const { version } = own;
  if (version !== manifest.version) return `ran ${version} before, not ${manifest.version}`;
  const other = versionsOn(facts, nodes).find(
    (each) => each !== undefined && each !== ran.to && each !== version,
  );
  return other === undefined ? undefined : `runs ${other}, which that upgrade did not install`;
}

/**
 * Returns what the record says about the host. Returns undefined if the record does not contain the host, or if the
 * Node was created again under the same name.
 */
function entryOf(ran: Before | undefined, name: string, uid: string | undefined) {
  const own = ownMember(ran?.hosts, name);
  return own?.uid === uid ? own : undefined;
}

interface Found {
  readonly left: readonly string[];
  readonly stuck: readonly string[];
  readonly moves: boolean;
  readonly isOfWorkersAlone: boolean;
}

function findingsOf(
  { manifest, plan }: Survey,
  ran: Before | undefined,
  { left, stuck, moves, isOfWorkersAlone }: Found,
): Finding[] {
  const { version } = manifest;
  const running = openRequest(plan);
  const why = left.join('; ');
  if (running !== undefined && running.version === version && running.back !== true)
    return [
      hard('F4', `an upgrade to ${version} is in progress`, 'leave --back out to continue it'),
    ];
  if (ran === undefined && left.length > 0)
    return [
      back(
        `ConfigMap ${PLACE.namespace}/${PLACE.name} does not record what the hosts ran before the last upgrade`,
      ),
    ];
  if (left.length > 0 && !moves) return [back(`no host can go back to ${version}: ${why}`)];
  if (stuck.length > 0 && !isOfWorkersAlone)
    return [back(`all control-plane hosts must go back together, but ${why}`)];
  return [];
}

/**
 * Returns a finding if the target version cannot be correct. This finding replaces the findings of all other version
 * rules, because they would report the same problem.
 */
export function targetFinding(
  { manifest, hosts }: Survey,
  way: GoingBack | undefined,
): Finding | undefined {
  const to = parseVersion(manifest.version);
  const found = hosts.flatMap(
    ({ staticPods }) => parseVersion(staticPods['kube-apiserver'] ?? '') ?? [],
  );
  const sorted = found.toSorted(compareVersions);
  const oldest = sorted[0];
  const newest = sorted.at(-1);
  if (!to || !oldest || !newest) return undefined;
  const [next] = minorsBetween(oldest, to);
  if (next !== undefined)
    return hard(
      'R2',
      `API servers are at ${textOf(oldest)}: go to v${next} first, then to ${textOf(to)}`,
    );
  if (compareVersions(to, newest) >= 0) return undefined;
  if (!isSameMinor(to, newest))
    return back(
      `API servers are at ${textOf(newest)} and cannot go back to ${textOf(to)}: Kubernetes does not support a return to an older minor version, because etcd may hold objects that this version cannot read`,
    );
  if (way !== undefined) return undefined;
  return {
    ...back(`API servers are at ${textOf(newest)}, and ${textOf(to)} is older`),
    lift: 'back',
  };
}

const back = (message: string): Finding => ({ rule: 'R12', severity: 'hard', message });

/**
 * Returns the versions that the hosts ran before the upgrade of this plan. If the plan goes back, or repeats an upgrade
 * that did not succeed, the function returns the versions that the previous plan recorded.
 */
export function recordFor(survey: Survey, request: Request): Before | undefined {
  const earlier = beforeOf(survey.plan);
  if (request.back) return earlier;
  const known = earlier?.to === request.version ? earlier.hosts : {};
  const hosts = survey.hosts.flatMap((facts) => {
    const { name } = facts.host;
    const uid = nodeNamed(name, survey.nodes)?.metadata.uid;
    const own = entryOf(earlier?.to === request.version ? earlier : undefined, name, uid);
    const version = own?.version ?? onlyVersionOn(facts, survey);
    return version === undefined
      ? []
      : [[name, { ...(uid === undefined ? {} : { uid }), version }] as const];
  });
  return { to: request.version, hosts: { ...known, ...Object.fromEntries(hosts) } };
}

/**
 * Returns the version of the kubelet and the static pods if they all have the same version; undefined if their versions
 * differ. The version of kubeadm is ignored.
 */
function onlyVersionOn(facts: HostFacts, { nodes }: Survey): string | undefined {
  const [, ...running] = versionsOn(facts, nodes);
  const [version, ...others] = new Set(running);
  return others.length === 0 ? version : undefined;
}
