/** Says whether upgraded nodes can go back to the version that they had before, and what prevents that. */
import { listed, listedOneByOne } from '../util/phrases.ts';
import { isNewerMinor, isSameMinor, parseVersion, type Version } from '../util/version.ts';
import { isSameVersion } from './release-parts.ts';

/** What is known about one upgraded node. */
export interface UpgradedNode {
  readonly name: string;
  readonly role: 'controller' | 'worker';
  /** The version before the upgrade; undefined if it is unknown. */
  readonly from?: string | undefined;
  /** The version that the upgrade brought. */
  readonly to: string;
  /**
   * The binary of the previous version that the host keeps or has removed; undefined if the agent of the host does not
   * report it.
   */
  readonly kept?: KeptForWayBack | undefined;
  /** `<os>-<architecture>`; undefined if it is unknown. */
  readonly platform?: string | undefined;
  /**
   * The airgap bundles of the previous version; undefined if the agent of the host has placed no bundle, or does not
   * report it.
   */
  readonly keptBundle?: Pick<KeptForWayBack, 'version' | 'gone'> | undefined;
  /** True if a download of the earlier version is known. */
  readonly hasDownload?: boolean;
  /** The time at which the upgrade of the node ended, in RFC 3339 format; undefined if it is not known. */
  readonly ended?: string | undefined;
}

export interface KeptForWayBack {
  readonly version?: string;
  readonly sha256?: string;
  readonly until?: string;
  readonly gone?: 'Expired' | 'DiskFull' | 'Removed' | 'Changed';
}

/**
 * Says whether nodes can go back. `closing` means that they can go back until a known time. `unknown` means that too
 * few facts are known to say more.
 */
export interface WayBack {
  readonly state: 'open' | 'closing' | 'closed' | 'unknown';
  /** If the state is `closing`, the time after which the nodes can no longer go back, in RFC 3339 format. */
  readonly until?: string;
  /** One sentence without a full stop. */
  readonly message: string;
}

/**
 * The longest time after the end of an upgrade until the agent has announced which file its host keeps now, in
 * milliseconds. The agent adds it to its last report, or compares its announcement with the host once a minute.
 */
export const ANNOUNCED_WITHIN_MS = 120_000;

/** The most minor versions by which a kubelet may be older than an API server, by the version skew policy of Kubernetes. */
const MOST_BEHIND = 3;

/**
 * Returns whether one node can go back. `servers` are the versions of all API servers, and `now` is in milliseconds.
 * `mostBehind` is the number of minor versions by which the distribution supports kubelets that are older than an API
 * server.
 */
export function wayBackOfNode(
  node: UpgradedNode,
  servers: readonly (string | undefined)[],
  now: number,
  mostBehind = MOST_BEHIND,
): WayBack {
  const { from } = node;
  const earlier = parseVersion(from);
  const later = parseVersion(node.to);
  if (from === undefined || !earlier || !later)
    return { state: 'unknown', message: 'the version before the upgrade is not known' };
  if (node.role === 'controller' && !isSameMinor(earlier, later))
    return { state: 'closed', message: noReturn(earlier, later) };
  const skew = node.role === 'worker' ? skewOf(earlier, servers, mostBehind) : undefined;
  if (skew !== undefined) return { state: 'closed', message: skew };
  const way = wayBackOfBinary(node, from, now);
  return lacksBundle(node) && way.state !== 'closed'
    ? { ...way, message: `${way.message}; ${NO_BUNDLE} ${from}, ${ONLY_IMAGES}` }
    : way;
}

const NO_BUNDLE = 'the host no longer has the airgap bundle of';
const ONLY_IMAGES =
  'so place it again before you go back; this is not necessary if the container runtime still has its images';

/**
 * Returns true if the host no longer has the airgap bundle of the earlier version. The version of a bundle is what the
 * author of the plan wrote, perhaps without the `v` that the service reports. A missing bundle alone does not prevent
 * going back, because the container runtime still has the images unless they were collected.
 */
export function lacksBundle({ from, keptBundle }: UpgradedNode): boolean {
  if (keptBundle?.gone === undefined || keptBundle.version === undefined || from === undefined)
    return false;
  return isSameVersion(keptBundle.version, from);
}

/** Returns whether all of these nodes can go back; undefined if there are no nodes. */
export function wayBackOfAll(
  nodes: readonly (WayBack & { readonly name: string; readonly needsBundle?: boolean })[],
): WayBack | undefined {
  if (nodes.length === 0) return undefined;
  const inState = (state: WayBack['state']) => nodes.filter((node) => node.state === state);
  const closed = inState('closed');
  const unknown = inState('unknown');
  const closing = inState('closing').toSorted((a, b) => timeOf(a) - timeOf(b));
  const [worst] = [...closed, ...unknown, ...closing];
  if (worst === undefined) {
    const bare = nodes.filter(({ needsBundle }) => needsBundle === true).map(({ name }) => name);
    const note =
      bare.length === 0
        ? ''
        : `; the airgap bundle of that version is gone from ${listed(bare)}, ${ONLY_IMAGES}`;
    const message = `every upgraded node can go back to its earlier version${note}`;
    return { state: 'open', message };
  }
  const same = nodes.filter(
    ({ state, message }) => state === worst.state && message === worst.message,
  );
  const others = nodes.filter(({ state }) => state === worst.state).length - same.length;
  const more = others === 0 ? '' : `; and ${others} more`;
  const message = `${listed(same.map(({ name }) => name))}: ${worst.message}${more}`;
  const { state, until } = worst;
  return { state, message, ...(until === undefined ? {} : { until }) };
}

/** Returns a sentence if controllers cannot go back from `to` to `from` once the first of them is upgraded; undefined if they can. */
export function pointOfNoReturn(from: string | undefined, to: string): string | undefined {
  const earlier = parseVersion(from);
  const later = parseVersion(to);
  if (!earlier || !later || !isNewerMinor(later, earlier)) return undefined;
  return `after the first controller runs v${later.major}.${later.minor}, ${noReturn(earlier, later)}`;
}

/**
 * Returns why controllers cannot go back to `earlier`. `earlier` is the newer version if a run downgraded the
 * controllers. Going back is then an upgrade.
 */
function noReturn(earlier: Version, later: Version): string {
  const old = `v${earlier.major}.${earlier.minor}`;
  const present = `v${later.major}.${later.minor}`;
  if (isNewerMinor(earlier, later))
    return `from ${present} back to ${old} is an upgrade of controllers: apply a plan with ${old}`;
  return `controllers cannot go back from ${present} to ${old}, because etcd may hold objects that ${old} cannot read: only a backup from before the upgrade brings ${old} back`;
}

function skewOf(
  kubelet: Version,
  servers: readonly (string | undefined)[],
  mostBehind: number,
): string | undefined {
  for (const text of servers) {
    const server = parseVersion(text);
    if (!server) continue;
    const what = `a kubelet of v${kubelet.major}.${kubelet.minor}`;
    if (server.major !== kubelet.major || server.minor - kubelet.minor > mostBehind)
      return `${what} is too old for the API server of ${text}`;
    if (isNewerMinor(kubelet, server)) return `${what} is newer than the API server of ${text}`;
  }
  return undefined;
}

function wayBackOfBinary(node: UpgradedNode, from: string, now: number): WayBack {
  const { kept, hasDownload, ended } = node;
  const lack = lackOfKept(kept, from, now);
  const until = kept?.until;
  if (lack === undefined && until === undefined)
    return { state: 'open', message: `the host keeps ${from} until its next upgrade` };
  if (hasDownload === true) return { state: 'open', message: `a download of ${from} is known` };
  if (lack === undefined && until !== undefined)
    return { state: 'closing', until, message: `the host keeps ${from} until ${until}` };
  if (isOfEarlierFile(kept, from) && now < Date.parse(ended ?? '') + ANNOUNCED_WITHIN_MS) {
    const message = `the agent may not have announced yet that its host keeps ${from}: it last announced ${kept.version}`;
    return { state: 'unknown', message };
  }
  const state = kept === undefined ? 'unknown' : 'closed';
  return { state, message: `${lack}, and no download of it is known, ${NEEDS_FLAGS}` };
}

/**
 * Returns true if the announcement names another file than the file of the version before the last upgrade. Each upgrade
 * keeps that file, so the announcement may be older than the upgrade.
 */
export function isOfEarlierFile(
  kept: KeptForWayBack | undefined,
  from: string,
): kept is KeptForWayBack & { readonly version: string } {
  return kept?.version !== undefined && kept.gone === undefined && kept.version !== from;
}

const NEEDS_FLAGS = 'so refit rollback needs --url and --sha256';

/**
 * Returns why the host cannot take its kept binary to go back to the version, as a clause; undefined if it can. `now` is
 * in milliseconds.
 */
export function lackOfKept(
  kept: KeptForWayBack | undefined,
  version: string,
  now: number,
): string | undefined {
  if (kept === undefined) return `the agent does not say whether the host keeps ${version}`;
  const { until, gone, sha256 } = kept;
  switch (gone) {
    case 'DiskFull':
      return `the agent removed ${version} to make room for a download`;
    case 'Expired':
      return `the host no longer keeps ${version}, because the retention time is over`;
    case 'Removed':
    case 'Changed':
      return `somebody ${gone.toLowerCase()} the binary of ${version} that the host kept`;
    case undefined:
      break;
  }
  if (kept.version !== version)
    return `the agent last announced that its host keeps ${kept.version ?? 'another version'} instead of ${version}`;
  if (until !== undefined && Date.parse(until) <= now)
    return `the host no longer keeps ${version}, because the retention time is over`;
  return sha256 === undefined
    ? `the agent does not say which sha256 the kept ${version} has`
    : undefined;
}

/**
 * Returns a clause that names the nodes whose kept binaries of one version differ although their platform is the same;
 * undefined if they are all the same. One Plan has only one file for each version and platform.
 */
export function differingKept(
  nodes: readonly { readonly name: string; readonly sha256: string | undefined }[],
): string | undefined {
  const bySum = Map.groupBy(nodes, ({ sha256 }) => sha256);
  if (bySum.size < 2) return undefined;
  const groups = [...bySum].map(
    ([sha256, group]) => `${sha256} on ${listed(group.map(({ name }) => name))}`,
  );
  return `the kept binaries differ, with the sha256 ${listedOneByOne(groups, 3)}`;
}

/**
 * Returns the way back of the nodes whose kept binaries differ, so that no Plan can take all of them back without a
 * download. The map has the names of these nodes.
 */
export function waysOfDiffering(nodes: readonly UpgradedNode[], now: number): Map<string, WayBack> {
  const keeping = nodes.filter(
    ({ kept, from, hasDownload }) =>
      hasDownload !== true && from !== undefined && lackOfKept(kept, from, now) === undefined,
  );
  const groups = Map.groupBy(keeping, ({ from, platform }) => `${from} ${platform ?? ''}`);
  return new Map(
    [...groups.values()].flatMap((group) => {
      const differ = differingKept(group.map(({ name, kept }) => ({ name, sha256: kept?.sha256 })));
      if (differ === undefined) return [];
      const message = `${differ}, and no download of ${group[0]?.from} is known, ${NEEDS_FLAGS}`;
      return group.map(({ name }) => [name, { state: 'closed', message }] as const);
    }),
  );
}

function timeOf({ until }: WayBack): number {
  return Date.parse(until ?? '');
}
