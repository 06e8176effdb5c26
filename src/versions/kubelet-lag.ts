/**
 * Judges how old kubelets would be beside the API servers that a plan upgrades. Kubernetes allows three minor versions,
 * and some distributions allow fewer.
 */
import { counted, listed } from '../util/phrases.ts';
import { isNewerMinor, parseVersion, type Version } from '../util/version.ts';
import { policyRemedy, type VersionStage, type VersionVerdict } from './plan-rules.ts';

/** A Node of the cluster and the version that its kubelet reports; undefined if the version is unknown. */
export interface ReportedKubelet {
  readonly name: string;
  readonly version?: string | undefined;
}

export interface KubeletLag {
  /** The kubelets of the cluster that belong to no controller, whether the plan lists them or not. */
  readonly kubelets: readonly ReportedKubelet[];
  /** The most minor versions by which a kubelet may be older than an API server. */
  readonly mostBehind: number;
}

interface Finding {
  /** The rest of the sentence, after the names. It names the refused version. */
  readonly what: string;
  readonly name: string;
  readonly refused: string;
}

/**
 * Returns the problems of the stages: an upgrade of API servers would leave a kubelet too far behind, or a kubelet would
 * go down to a version that is too old for an API server. It starts each stage from the versions after all earlier
 * stages. A step that brings a kubelet closer to the API servers is no problem, and neither is a plan that keeps the
 * minor version of the API servers: then the kubelets were too old before the plan.
 */
export function kubeletsLeftBehind(
  stages: readonly VersionStage[],
  apiServers: readonly ReportedKubelet[],
  { kubelets, mostBehind }: KubeletLag,
): VersionVerdict['problems'] {
  const servers = new Map(apiServers.map(({ name, version }) => [name, version]));
  const workers = new Map(kubelets.map(({ name, version }) => [name, version]));
  for (const { role, targets } of stages)
    if (role === 'worker')
      for (const { name, current, virtual } of targets)
        if (virtual === undefined && !workers.has(name)) workers.set(name, current);
  const findings = stages.flatMap((stage) => {
    const found = stage.forced ? [] : findingsOf(stage, { servers, workers, mostBehind });
    const versions = stage.role === 'controller' ? servers : workers;
    for (const { name } of stage.targets) versions.set(name, stage.version);
    return found;
  });
  return [...Map.groupBy(findings, ({ what }) => what).values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { what, refused } = first;
    const names = listed([...new Set(group.map(({ name }) => name))]);
    return {
      code: 'KubeletBehind',
      message: `${names} ${what} (rule KubeletBehind${policyRemedy('KubeletBehind')})`,
      details: { versions: [refused] },
    };
  });
}

interface Versions {
  readonly servers: ReadonlyMap<string, string | undefined>;
  readonly workers: ReadonlyMap<string, string | undefined>;
  readonly mostBehind: number;
}

function findingsOf(stage: VersionStage, versions: Versions): Finding[] {
  return stage.role === 'controller' ? leftBehind(stage, versions) : tooOld(stage, versions);
}

/** Finds the kubelets that stay at their version while the stage takes an API server to a newer minor version. */
function leftBehind(
  { version, targets }: VersionStage,
  { servers, workers, mostBehind }: Versions,
): Finding[] {
  const wanted = parseVersion(version);
  if (!wanted) return [];
  const raised = targets.filter(({ name, current }) => {
    const now = parseVersion(servers.get(name) ?? current);
    return now !== undefined && isNewerMinor(wanted, now);
  });
  if (raised.length === 0) return [];
  const names = listed(raised.map(({ name }) => name));
  return [...workers].flatMap(([name, text]) => {
    const kubelet = parseVersion(text);
    if (!kubelet || !isBehind(kubelet, wanted, mostBehind)) return [];
    const what = `would still have a kubelet of ${text} when the API server of ${names} has ${version}, and this distribution supports kubelets that are at most ${counted(mostBehind, 'minor version')} older: upgrade those kubelets first`;
    return [{ name, what, refused: version }];
  });
}

/** Finds the kubelets that the stage takes down to a version that is too old for an API server. */
function tooOld(
  { version, targets }: VersionStage,
  { servers, workers, mostBehind }: Versions,
): Finding[] {
  const wanted = parseVersion(version);
  if (!wanted) return [];
  const newer = [...servers].flatMap(([name, text]) => {
    const server = parseVersion(text);
    return server && isBehind(wanted, server, mostBehind) ? [`${name} (${text})`] : [];
  });
  if (newer.length === 0) return [];
  const what = `would go down to a kubelet of ${version}, too old for the API server of ${listed(newer)}: this distribution supports kubelets that are at most ${counted(mostBehind, 'minor version')} older`;
  return targets.flatMap(({ name, current, virtual }) => {
    const now = parseVersion(workers.get(name) ?? current);
    const goesDown = now !== undefined && isNewerMinor(now, wanted);
    return goesDown && virtual === undefined ? [{ name, what, refused: version }] : [];
  });
}

function isBehind(kubelet: Version, server: Version, most: number): boolean {
  return server.major !== kubelet.major
    ? isNewerMinor(server, kubelet)
    : server.minor - kubelet.minor > most;
}
