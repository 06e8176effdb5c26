/** Checks a cluster before the first change: finds out what to do on each host, and what prevents the upgrade. */

import { createHash } from 'node:crypto';
import { cordonOwner, isMarkStale, readOwner } from '../../../drain/cordon-marks.ts';
import type { DrainPreview } from '../../../drain/drain-preview.ts';
import { controlsOn } from '../../../engine/model/controls.ts';
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import {
  type ConfigMap,
  configMaps,
  kubeletVersionOf,
  type Node,
} from '../../../kube/resources.ts';
import { nearestHost } from '../../../util/nearest-host.ts';
import { compareVersions, parseVersion } from '../../../util/version.ts';
import { OLDEST_MAINTAINED } from '../../../versions/facts.ts';
import { type Finding, hard, warn, withAllowed } from '../../../versions/findings.ts';
import { etcdFacts, textOf, type VersionFacts } from '../../../versions/kubeadm-rules.ts';
import { judgeVersions } from '../../../versions/version-rules.ts';
import { CONTROL_PLANE, isController } from '../../shared/node-endpoints.ts';
import type { HostFacts } from '../host/probe.ts';
import { type ConfiguredSetting, removedFindings } from '../host/removed-settings.ts';
import { hasPhases, optionsFor } from '../host/scripts.ts';
import { absentOf, etcdChecks, problemsOf } from '../host/verify.ts';
import type { AddonPlan } from './addons.ts';
import { drainFindings } from './drain-findings.ts';
import { imageFindings } from './image-findings.ts';
import { labelFindings } from './kubeone-label.ts';
import { type Pool, poolFindings, poolsToRoll } from './machine-pools.ts';
import { controlPlaneOf, type Manifest } from './manifest.ts';
import {
  type Before,
  openRequest,
  PLACE,
  RENEWAL,
  type Request,
  readRecord,
  requestFor,
  requestOf,
} from './plan-object.ts';
import { isDone, nodeNamed, runtimeOf, virtualFindings, virtualNodes } from './survey-nodes.ts';
import { type GoingBack, goingBackOf, recordFor, targetFinding } from './way-back.ts';
import type { WebhookFinding } from './webhooks.ts';

export interface Survey {
  readonly manifest: Manifest;
  readonly hosts: readonly HostFacts[];
  /** All Nodes of the cluster, including those that the manifest does not list. */
  readonly nodes: readonly Node[];
  /** The `kubernetesVersion` in ConfigMap kubeadm-config; undefined if it is missing. */
  readonly clusterVersion: string | undefined;
  /** True if ConfigMap kubelet-config has `failCgroupV1: false`. kubeadm writes the content of that ConfigMap to each host. */
  readonly allowsCgroupV1: boolean;
  readonly configuration: readonly unknown[];
  /** The settings in the ConfigMaps of kubeadm that a later version may not have. */
  readonly configured?: readonly ConfiguredSetting[];
  readonly plan: ConfigMap | undefined;
  readonly policy: RolloutPolicy;
  /** The drain previews by the name of the node; empty if nodes are not drained. */
  readonly drainPreviews: ReadonlyMap<string, DrainPreview>;
  /** The webhooks that may refuse pods or Nodes during the upgrade. */
  readonly webhooks: readonly WebhookFinding[];
  /** The MachineDeployments in the order of their names; undefined if they cannot be read. */
  readonly pools: readonly Pool[] | undefined;
  /** True if the MachineDeployments are to be upgraded as well. */
  readonly rollsPools: boolean;
  /** The addons without those that are skipped. */
  readonly addons: readonly AddonPlan[];
  /** Findings about the kubeconfig of the person who runs the command. */
  readonly kubeconfig?: readonly Finding[];
  /** True if the user allows Refit to replace labels of KubeOne, which rule F4 otherwise forbids. */
  readonly takesOverLabel?: boolean;
  /** True if the hosts are to go back to the version that they ran before. */
  readonly goesBack?: boolean;
}

export interface HostAssessment {
  readonly request: Request;
  /** True if a rollout of this request has started and not ended. */
  readonly resumes: boolean;
  /** The reason that a person gave when aborting the rollout that is resumed; undefined if nobody aborted it. */
  readonly aborted?: string | undefined;
  /** True if hosts of the request may be partly upgraded, because a rollout is resumed or has failed. */
  readonly continues: boolean;
  readonly start: string;
  /** The versions of the hosts before the upgrade, for the record of a new plan. */
  readonly before?: Before | undefined;
  /** The hosts that do not go back to the earlier version: the keys are their names, the values are the reasons. */
  readonly stays?: ReadonlyMap<string, string> | undefined;
  /** A hash of the plan. Two plans have the same digest if they start from the same state and make the same changes. */
  readonly digest: string;
  /** The MachineDeployments to upgrade once all hosts are done. */
  readonly toRoll: readonly Pool[];
  readonly toApply: readonly AddonPlan[];
  readonly findings: readonly Finding[];
}

const LOGIN = ['user', 'identityFile', 'knownHostsFile', 'configFile'];
const OF_ONE_HOST = new Set(['Kd', 'cgroup', 'containerd', 'kernel']);

export function assessHosts(survey: Survey): HostAssessment {
  const { manifest, plan } = survey;
  const open = openRequest(plan);
  const resumes = open !== undefined && open.version === manifest.version;
  // A failed rollout to the same version has ended, but its hosts may be half upgraded.
  const isSame = plan !== undefined && requestOf(plan)?.version === manifest.version;
  const continues =
    isSame &&
    readRecord(plan).recorded?.phase !== 'done' &&
    (resumes || leftToRenew(plan).length === 0);
  const back = survey.goesBack === true || (resumes && open.back) ? goingBackOf(survey) : undefined;
  const request = resumes ? open : freshRequest(survey, back);
  const uids = survey.hosts.map(({ host }) => nodeNamed(host.name, survey.nodes)?.metadata.uid);
  const versions = survey.hosts.map(({ kubeadm, kubelet }) => [kubeadm, kubelet]);
  // `start` is the state of the hosts before the upgrade began. A resumed upgrade keeps `start`. It is empty if the
  // upgrade was begun by an earlier release, which did not record it.
  const start = resumes
    ? (plan?.data?.['start'] ?? '')
    : JSON.stringify([uids, versions, survey.configuration]);
  const toRoll = survey.rollsPools ? poolsToRoll(survey.pools ?? [], manifest.version) : [];
  // After an upgrade, all addons are applied again, because kubeadm may overwrite what they changed, for example in CoreDNS.
  const isUpgrade = resumes || hostsOf(request).length > 0;
  const toApply = survey.addons.filter(
    ({ changes, problems }) => isUpgrade || changes.length + problems.length > 0,
  );
  const begun = {
    resumes,
    continues,
    start,
    aborted: resumes && plan ? controlsOn(plan).abort : undefined,
    before: recordFor(survey, request),
    stays: back?.stays,
  };
  const seen = { ...begun, request, toRoll, toApply, digest: digestOf(survey, request, start) };
  const known = [...lockFindings(survey, open), ...membershipFindings(survey)];
  const wrong = targetFinding(survey, back);
  if (wrong) return { ...seen, findings: [...known, wrong] };
  const findings = [
    ...known,
    ...(continues ? [] : [...readyFindings(survey), ...etcdHealth(survey)]),
    ...cordonFindings(survey, request),
    ...(survey.kubeconfig ?? []),
    ...virtualFindings(survey),
    ...(back?.findings ?? []),
    ...unique(judgeVersions(versionFacts(survey, request, continues, back))),
    ...unique(hostFindings(survey, hostsOf(request))),
    ...removedFindings(survey, manifest.version, hostsOf(request)),
    ...stumbleFindings(survey, request).filter(({ severity }) => severity === 'warn' || !continues),
    ...drainFindings(survey.drainPreviews, hostsOf(request), survey.policy),
    ...webhooksInTheWay(survey, request, toRoll.length),
    ...survey.addons.flatMap(({ name, problems, notes }) =>
      [...problems.map((why) => `${name} is not applied: ${why}`), ...notes].map((why) =>
        warn('addon', why),
      ),
    ),
    ...(survey.rollsPools ? poolFindings(survey.pools, manifest.version) : []),
  ];
  return { ...seen, findings: withAllowed(findings, manifest.allow) };
}

function digestOf(survey: Survey, fresh: Request, begin: string): string {
  const { manifest, policy, plan, pools, rollsPools, addons } = survey;
  // When all hosts are done, other work of the plan may be left. In that case the digest uses the request of the ended
  // rollout. So the digest stays the same until all work of the plan is done.
  const isAfter = plan && isEmpty(fresh) && readRecord(plan).recorded?.phase === 'done';
  const ended = isAfter ? requestOf(plan) : undefined;
  const [request, start] =
    ended?.version === manifest.version ? [ended, plan?.data?.['start'] ?? ''] : [fresh, begin];
  const {
    version,
    binaries,
    containerd,
    kubeadm,
    etcdSnapshots,
    approveServingCertificates,
    ssh,
    hosts,
  } = manifest;
  const certificates = [approveServingCertificates, manifest.etcdSnapshotCertificate];
  const names = rollsPools ? [pools?.map(({ metadata }) => metadata.name)] : [];
  const after = [...names, ...addons.map(({ objects, force }) => [objects, force])];
  const chosen = [version, binaries, containerd, kubeadm, etcdSnapshots, certificates, ssh, hosts];
  const how = [...chosen, policy, [...policy.allow], ...after];
  const text = JSON.stringify([start, request, ...how], (key, value: unknown) =>
    LOGIN.includes(key) ? undefined : value,
  );
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

export function isEmpty(request: Request): boolean {
  return hostsOf(request).length + request.certificates.length === 0;
}

export function hostsOf({ leader, followers, kubelets, workers }: Request): string[] {
  return [...new Set([...leader, ...followers, ...kubelets, ...workers])];
}

/** Returns a request without the hosts whose components all have the target version. */
function freshRequest(survey: Survey, back: GoingBack | undefined): Request {
  const { manifest, hosts, nodes, clusterVersion, plan } = survey;
  if (back) return back.request;
  const done = new Set(
    hosts.filter((facts) => isDone(facts, nodes, manifest.version)).map(({ host }) => host.name),
  );
  const first = controlPlaneOf(manifest)[0]?.name ?? '';
  // After a restore of etcd, the cluster may record another version than the hosts have. Then `kubeadm upgrade apply` runs
  // again, because only it upgrades the objects that kubeadm keeps in the cluster.
  if (clusterVersion !== undefined && clusterVersion !== manifest.version) done.delete(first);
  const apiServers = hosts.flatMap(({ staticPods }) => staticPods['kube-apiserver'] ?? []);
  const leaderIsDone = clusterVersion === manifest.version && done.has(first);
  const minor = parseVersion(manifest.version)?.minor;
  // If the version of an API server is unknown, its minor version is assumed to differ from the minor version of the
  // target.
  const isMinor =
    hosts.some(({ unreadImages }) => unreadImages?.['kube-apiserver'] !== undefined) ||
    apiServers.some((version) => parseVersion(version)?.minor !== minor);
  const left = plan ? leftToRenew(plan) : [];
  const renewed = hosts.filter(
    ({ host, toRenew }) => toRenew && (toRenew.length > 0 || left.includes(host.name)),
  );
  const toRenew = new Set(renewed.map(({ host }) => host.name));
  return requestFor(manifest, { done, leaderIsDone, isMinor, toRenew });
}

/**
 * Returns the names of the hosts whose certificates are not completely renewed. A component of such a host may not have
 * loaded the new certificates yet. The rollout starts no other stage before all these hosts are done.
 */
function leftToRenew(plan: ConfigMap): string[] {
  const begun = readRecord(plan).recorded?.stages.find(({ id }) => id === RENEWAL)?.targets ?? [];
  return begun.filter(({ state }) => state !== 'done').map(({ name }) => name);
}

/** Returns findings of rule F4: only one upgrade may run at a time, including upgrades of other tools. */
function lockFindings(survey: Survey, open: Request | undefined): Finding[] {
  const { manifest, nodes, takesOverLabel = false } = survey;
  const ofKubeOne = labelFindings(nodes, takesOverLabel);
  if (!open || ofKubeOne.some(({ severity }) => severity === 'hard')) return ofKubeOne;
  const other = `${open.back ? 'a roll-back' : 'an upgrade'} to ${open.version} is in progress (ConfigMap ${PLACE.namespace}/${PLACE.name})`;
  if (open.version !== manifest.version)
    return [...ofKubeOne, hard('F4', other, 'finish it with its own manifest first')];
  const listed = new Set(manifest.hosts.map(({ name }) => name));
  // If the Node of a host no longer exists, the manifest need not list the host, because the rollout never starts on
  // it.
  const lost = [...open.certificates, ...hostsOf(open)].filter(
    (name) => !listed.has(name) && nodeNamed(name, nodes),
  );
  const missing = 'the plan in progress needs hosts that the manifest no longer lists';
  if (lost.length === 0) return ofKubeOne;
  return [...ofKubeOne, hard('F4', missing, `add ${lost.join(', ')} again`)];
}

/** Returns findings of rules F1 and F2: the manifest must list every control-plane host, and only hosts of the cluster. */
export function membershipFindings({
  manifest,
  nodes,
}: Pick<Survey, 'manifest' | 'nodes'>): Finding[] {
  const listed = new Set(manifest.hosts.map(({ name }) => name));
  const notListed = nodes.map(({ metadata }) => metadata.name).filter((name) => !listed.has(name));
  const findings = manifest.hosts.flatMap(({ name, role }) => {
    const node = nodeNamed(name, nodes);
    if (!node) {
      const meant = nearestHost(name, notListed);
      const cure = `${meant ? `perhaps ${meant} is meant: ` : ''}correct the name, or take the host out of the manifest`;
      return [hard('F2', `host ${name}: the cluster has no Node of this name`, cure)];
    }
    if (isController(node) === (role === 'controlPlane')) return [];
    const found = `its Node ${isController(node) ? 'has' : 'lacks'} the label ${CONTROL_PLANE}`;
    return [hard('F2', `host ${name} has role ${role}, but ${found}`, 'correct the role')];
  });
  const missing = nodes.filter((node) => isController(node) && !listed.has(node.metadata.name));
  if (missing.length === 0) return findings;
  const names = missing.map(({ metadata }) => metadata.name).join(', ');
  return [
    ...findings,
    hard('F1', 'the manifest does not list all control-plane hosts', `add ${names}`),
  ];
}

/**
 * Warns about Nodes that are not in the request, but that an earlier run of Refit left cordoned. No run removes these
 * cordons.
 */
function cordonFindings({ nodes, plan }: Survey, request: Request): Finding[] {
  const ours = nodes.filter(
    (of) => !isMarkStale(of) && readOwner(cordonOwner(of) ?? '')?.kind === configMaps.kind,
  );
  const left = ours
    .map(({ metadata }) => metadata.name)
    .filter((name) => !hostsOf(request).includes(name));
  const why =
    'an earlier run left the node cordoned; when the node works again, run kubectl uncordon';
  return openRequest(plan)
    ? []
    : left.map((name) => warn('cordon', `node ${name}: ${why} ${name}`));
}

/**
 * Returns findings of rule F3: every Node must be Ready before the upgrade. Otherwise people could think that the
 * upgrade had broken the Node.
 */
function readyFindings({ manifest, nodes }: Survey): Finding[] {
  const listed = manifest.hosts.flatMap(({ name }) => nodeNamed(name, nodes) ?? []);
  return absentOf(listed).map((name) => hard('F3', `node ${name} is not Ready`));
}

/** Returns findings about the health of the members of etcd, because the upgrade restarts each of them. */
function etcdHealth({ hosts }: Survey): Finding[] {
  const checks = etcdChecks(hosts);
  const two =
    'etcd has two members, so it accepts no writes while one of them restarts; three members would avoid that';
  const isTwo = hosts.some(({ etcd }) => typeof etcd === 'object' && etcd.members.length === 2);
  return [
    ...problemsOf(checks).map((problem) => hard('etcd', problem)),
    ...(isTwo ? [warn('etcd', two)] : []),
  ];
}

function versionFacts(
  survey: Survey,
  { leader }: Request,
  resuming: boolean,
  back: GoingBack | undefined,
): VersionFacts {
  const { manifest, hosts, nodes, clusterVersion, policy } = survey;
  const controllers = hosts.filter(({ host }) => host.role === 'controlPlane');
  const managed = new Map(manifest.hosts.map((host) => [host.name, host]));
  const unjudged = virtualNodes(survey);
  const members = controllers.flatMap(({ host, leaves, staticPods, unreadImages = {} }) => {
    // A host runs a member of etcd even if the version of the member's image cannot be parsed.
    const etcd = staticPods['etcd'] ?? unreadImages['etcd'] ?? [];
    const own = `${leader.includes(host.name) ? 'apply' : 'node'}:etcdUpgrade:`;
    return (optionsFor(manifest, host).etcdUpgrade ?? !leaves?.includes(own)) ? etcd : [];
  });
  return {
    apiServers: controllers.flatMap(({ staticPods }) => staticPods['kube-apiserver'] ?? []),
    // Without a target version, the checks assume that the API servers keep their version.
    ...(back?.isOfWorkersAlone ? {} : { target: manifest.version }),
    goesBack: back !== undefined,
    // The versions of API servers may differ after an interrupted upgrade. They may also differ when the hosts go back
    // to the earlier version. In that case the record of the upgrade explains the difference.
    resuming: resuming || back !== undefined,
    oldestMaintained: OLDEST_MAINTAINED,
    kubelets: nodes.flatMap((node) => {
      const { name } = node.metadata;
      const version = kubeletVersionOf(node) ?? '';
      const host = managed.get(name);
      const skips = manifest.workersSkipMinors && host?.role === 'worker';
      const stays = back?.stays.has(name) === true;
      const goesBack = back !== undefined;
      const way = { target: manifest.version, drained: policy.drain.enabled, skips, goesBack };
      // The Node of a host that has not joined yet has no version.
      if (version === '' && host) return [];
      if (unjudged.has(name)) return [];
      return [{ name, version, ...(host && !stays ? way : {}) }];
    }),
    controllers: controllers.flatMap(({ staticPods }) =>
      (['kube-controller-manager', 'kube-scheduler'] as const).flatMap((name) => {
        const version = staticPods[name];
        const apiServer = staticPods['kube-apiserver'];
        return version && apiServer ? [{ name, version, apiServer }] : [];
      }),
    ),
    etcd: etcdFacts(members, manifest.version),
    // The target version is given as the version of kubeadm, because the staged kubeadm carries out the upgrade. The
    // host checks that version.
    kubeadm: {
      verb: 'apply',
      version: manifest.version,
      ...(clusterVersion ? { cluster: clusterVersion } : {}),
    },
  };
}

function hostFindings(
  { manifest, hosts, nodes, allowsCgroupV1 }: Survey,
  upgraded: readonly string[],
): Finding[] {
  return hosts.flatMap((facts): Finding[] => {
    const { host, kubeadm, kubelet, ground, missing, certificates } = facts;
    const findings: Finding[] = [];
    const unreadable = kubeadm ? 'kubelet' : 'kubeadm';
    if (!kubeadm || !kubelet)
      findings.push(
        hard(
          'F11',
          `${host.name}: cannot read the version of ${unreadable}`,
          'check that it is installed',
        ),
      );
    findings.push(...imageFindings(facts));
    // If a missing manifest can be restored, it causes no finding here, because Refit restores it before the survey
    // that decides about the upgrade.
    for (const { name, backup, detail } of missing)
      if (backup === 'refused')
        findings.push(hard('F11', `${host.name}: ${describeRefused(name, detail)}`, BY_HAND));
    const other = certificates.find(({ nodeName = host.name }) => nodeName !== host.name)?.nodeName;
    const leads = `host ${host.name}: its address belongs to the host of Node ${other}, according to the certificate of the kubelet there`;
    if (other !== undefined) findings.push(hard('F2', leads, 'correct the address'));
    const runtime = runtimeOf(nodeNamed(host.name, nodes));
    // This check uses the runtime that the Node reports, because that is the runtime of the kubelet. The containerd
    // that was found on the host may be unused, or newer than the running process.
    const isContainerd = runtime === undefined || runtime.name === 'containerd';
    const current = isContainerd ? (runtime?.version ?? ground.containerd) : undefined;
    const has = parseVersion(current);
    const wanted = parseVersion(manifest.containerd?.version);
    const isUpgraded = upgraded.includes(host.name);
    if (wanted && isUpgraded && !isContainerd) {
      const other = `${host.name}: its kubelet uses ${runtime.name}, which is not containerd`;
      findings.push(hard('containerd', other, 'leave containerd out of the manifest'));
    }
    if (has && wanted && isUpgraded && compareVersions(wanted, has) < 0) {
      const back = `${host.name}: containerd is at ${textOf(has)}: Refit does not downgrade to ${textOf(wanted)}`;
      findings.push(hard('containerd', back, `set containerd.version to ${textOf(has)} or later`));
    }
    const { containerd: _, ...rest } = ground;
    const containerd = isContainerd && wanted ? textOf(wanted) : current;
    // If a worker skips minor versions, the version of its kubeadm is not checked, because kubeadm records no version
    // of a worker.
    const skips = manifest.workersSkipMinors && host.role === 'worker';
    const managedBy = kubeadm && !skips ? { managedBy: kubeadm } : {};
    const own: VersionFacts = {
      apiServers: [],
      target: manifest.version,
      kubeadm: { verb: 'node', version: manifest.version, ...managedBy },
      node: { ...rest, ...(containerd ? { containerd } : {}), allowsCgroupV1 },
    };
    const judged = judgeVersions(own).filter(({ rule }) => OF_ONE_HOST.has(rule));
    return [
      ...findings,
      ...judged.map((finding) => ({ ...finding, message: `${host.name}: ${finding.message}` })),
    ];
  });
}

export const BY_HAND = 'restore the manifest by hand';

export function describeRefused(name: string, why: string): string {
  return `${name}.yaml is missing and its backup is not restored: ${why}`;
}

/**
 * Returns findings about problems that would make kubeadm fail on a host. For hosts that are not upgraded, only their
 * certificates are checked, because kubeadm needs no other files there.
 */
function stumbleFindings({ hosts }: Survey, request: Request): Finding[] {
  const upgraded = hostsOf(request);
  const all = [...upgraded, ...request.certificates];
  const late = `kubeadm ${request.version} has no phases: it checks a control-plane host only when it upgrades that host`;
  const found = hosts.flatMap(({ host, problems }) =>
    problems
      .filter(
        ({ rule }) =>
          rule === 'certificate' || (rule === 'host' ? upgraded : all).includes(host.name),
      )
      .map((problem): Finding => {
        const message = `${host.name}: ${problem.message}`;
        // Nothing restarts on this host, so its certificates refuse no upgrade of other hosts.
        return all.includes(host.name) ? { ...problem, message } : warn(problem.rule, message);
      }),
  );
  return hasPhases(request.version) ? found : [...found, warn('host', late)];
}

function webhooksInTheWay(
  { webhooks, policy }: Survey,
  request: Request,
  pools: number,
): Finding[] {
  const names = hostsOf(request);
  const drained = policy.drain.enabled ? names : [];
  const meant = webhooks.filter(({ only }) =>
    only === undefined ? names.length + pools > 0 : drained.includes(only),
  );
  return meant.map(({ finding }) => finding);
}

function unique(findings: readonly Finding[]): Finding[] {
  return [
    ...new Map(findings.map((finding) => [`${finding.rule} ${finding.message}`, finding])).values(),
  ];
}
