/**
 * Looks for removed APIs in the stored releases of Helm. Helm compares the manifest of the current release with that of the
 * next one, so `helm upgrade` fails if the API server does not know a kind of the current one.
 */
import {
  type ConfigMap,
  configMaps,
  type KubeObject,
  keyAt,
  type Secret,
  secrets,
} from '../kube/resources.ts';
import { ownMember } from '../util/own-member.ts';
import { counted, listed } from '../util/phrases.ts';
import { printable } from '../util/printable.ts';
import { factsOfMinor, NEWEST_KNOWN, OLDEST_KNOWN } from '../versions/facts.ts';
import type { MinorFacts } from '../versions/minor-facts.ts';
import type { Asking } from './asking.ts';
import type { FoundBy } from './finding.ts';
import { type StoredKinds, storedKinds } from './helm/stored-release.ts';

/** Helm sets these labels on each revision of a release. A later revision has replaced one that is superseded. */
const REVISIONS = 'owner=helm,status!=superseded';
/** A revision may have almost a mebibyte, and its manifest several. */
const PAGE = 10;
/** At most this many removed APIs are told one by one. The manifests are texts that anybody may have written. */
const MOST_TOLD = 30;
/** The groups that Kubernetes served before the oldest version that Refit knows, and serves no more. */
const DROPPED_GROUPS = ['auditregistration.k8s.io', 'extensions', 'settings.k8s.io'];

/** What the slim form of a stored revision keeps. */
interface Revision extends KubeObject {
  readonly kinds?: StoredKinds;
}

/** Resolves with a warning for each API that the target lacks, and with the stores that could not be read. */
export async function releaseFindings(
  { list }: Pick<Asking, 'list'>,
  target: MinorFacts,
): Promise<FoundBy[]> {
  const choices = { labelSelector: REVISIONS, pageSize: PAGE };
  const groups = builtInGroups();
  const asked = await Promise.all([
    list<Secret>(secrets, {
      ...choices,
      slim: (object) => slimmed(object, decoded(object.data), groups),
    }),
    list<ConfigMap>(configMaps, {
      ...choices,
      slim: (object) => slimmed(object, object.data, groups),
    }),
  ]);
  const releases = asked.flatMap((each) =>
    each.kind === 'answer' ? currentOf(each.value as readonly Revision[]) : [],
  );
  const unread = asked.flatMap((each): FoundBy[] =>
    each.kind === 'unknown'
      ? [{ state: 'unknown', message: `the stored releases of Helm: ${each.why}` }]
      : [],
  );
  return [...unread, ...unclearFindings(releases), ...lostFindings(releases, target)];
}

/** Returns the revision of each release that `helm upgrade` takes as the current one. */
function currentOf(revisions: readonly Revision[]): Revision[] {
  return [...Map.groupBy(revisions, nameOf).values()].flatMap((all) => {
    const sorted = all.toSorted((one, other) => numberOf(other) - numberOf(one));
    const deployed = sorted.find((each) => statusOf(each) === 'deployed');
    // Helm refuses to work while a revision is pending. Somebody then deletes this revision, or rolls back.
    const last = sorted.find((each) => statusOf(each)?.startsWith('pending-') !== true);
    return deployed ?? (last !== undefined && statusOf(last) === 'failed' ? last : []);
  });
}

function statusOf({ metadata: { labels } }: KubeObject): string | undefined {
  return ownMember(labels, 'status');
}

function numberOf({ metadata: { labels } }: KubeObject): number {
  return Number.parseInt(ownMember(labels, 'version') ?? '', 10) || 0;
}

/** Returns the namespace and the name of the release, as `helm list` shows them. */
function nameOf({ metadata: { name, namespace, labels } }: KubeObject): string {
  return printable(keyAt(ownMember(labels, 'name') ?? name, namespace));
}

function unclearFindings(releases: readonly Revision[]): FoundBy[] {
  const groups = Map.groupBy(releases, ({ kinds }) => kinds?.unclear);
  return [...groups].flatMap(([why, group]): FoundBy[] =>
    why === undefined
      ? []
      : [
          {
            state: 'unknown',
            object: `release of Helm ${listed(group.map(nameOf))}`,
            message: `${counted(group.length, 'stored release')} cannot be read${why}`,
          },
        ],
  );
}

function lostFindings(releases: readonly Revision[], target: MinorFacts): FoundBy[] {
  const users = new Map<string, string[]>();
  for (const release of releases)
    for (const api of release.kinds?.apis ?? [])
      if (!isServed(api, target)) users.getOrInsert(api, []).push(nameOf(release));
  const told = [...users].slice(0, MOST_TOLD);
  const more = [...users].slice(MOST_TOLD);
  const names = new Set(more.flatMap(([, each]) => each));
  return [
    ...told.map(([api, each]) => lostFinding(api, each, target)),
    ...(more.length === 0
      ? []
      : [lostFinding(counted(more.length, 'more API'), [...names], target)]),
  ];
}

function lostFinding(what: string, names: readonly string[], { minor }: MinorFacts): FoundBy {
  return {
    state: 'warning',
    object: `release of Helm ${listed(names)}`,
    message: `its stored manifest has ${what}, which Kubernetes 1.${minor} does not serve, so \`helm upgrade\` of it fails there`,
    cure: 'upgrade the chart first to a version without it, or change the stored release with the plugin mapkubeapis of Helm',
  };
}

/**
 * Returns true if Helm finds the kind in the API. Beside each kind that the API server has, Helm knows its list, and the
 * kind List in each version of an API.
 */
function isServed(api: string, target: MinorFacts): boolean {
  const [kind = '', apiVersion = ''] = api.split(' of ');
  return (
    target.serves(apiVersion, kind) ||
    (kind.endsWith('List') && target.serves(apiVersion, kind.slice(0, -'List'.length))) ||
    (kind === 'List' && target.apis.some(([served]) => served === apiVersion))
  );
}

/** Returns the groups of Kubernetes itself. Any other group may be served by anybody. */
function builtInGroups(): ReadonlySet<string> {
  const groups = new Set(DROPPED_GROUPS);
  for (let minor = OLDEST_KNOWN; minor <= NEWEST_KNOWN; minor++)
    for (const [apiVersion] of factsOfMinor(minor)?.apis ?? [])
      groups.add(apiVersion.split('/')[0] ?? '');
  return groups;
}

/** The values of a Secret are base64 once more than those of a ConfigMap. */
function decoded(data: Secret['data']): Record<string, string> {
  const release = Buffer.from(ownMember(data, 'release') ?? '', 'base64').toString('latin1');
  return { release };
}

function slimmed<T extends KubeObject>(
  object: T,
  data: Record<string, string> | undefined,
  groups: ReadonlySet<string>,
): T {
  const { name, namespace, labels = {} } = object.metadata;
  const kept = ['name', 'status', 'version'].flatMap((key) => {
    const value = ownMember(labels, key);
    return value === undefined ? [] : [[key, value] as const];
  });
  const isRead = ['deployed', 'failed'].includes(statusOf(object) ?? '');
  const slim: Revision = {
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      labels: Object.fromEntries(kept),
    },
    ...(isRead && { kinds: storedKinds(ownMember(data, 'release') ?? '', groups) }),
  };
  return slim as unknown as T;
}
