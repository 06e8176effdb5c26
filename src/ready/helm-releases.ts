/**
 * Looks for removed APIs in the stored releases of Helm. Helm compares the manifest of the last release with that of the
 * next one, so `helm upgrade` fails if the API server does not know a kind of the last one.
 */
import { gunzipSync } from 'node:zlib';
import {
  type ConfigMap,
  configMaps,
  type KubeObject,
  keyAt,
  type Secret,
  secrets,
} from '../kube/resources.ts';
import { isRecord, parseJson } from '../util/json.ts';
import { counted, listed } from '../util/phrases.ts';
import { printable } from '../util/printable.ts';
import { factsOfMinor, NEWEST_KNOWN, OLDEST_KNOWN } from '../versions/facts.ts';
import type { MinorFacts } from '../versions/minor-facts.ts';
import type { Asking } from './asking.ts';
import type { FoundBy } from './finding.ts';

/** Helm sets these labels on the release that is in effect, whichever of its two stores it uses. */
const DEPLOYED = 'owner=helm,status=deployed';
/** A release may have almost a mebibyte, and its manifest several. */
const PAGE = 10;
const MOST_MANIFEST_BYTES = 64 * 1024 * 1024;
/** Helm stores a release without these bytes uncompressed, as its early versions did. */
const GZIP = Buffer.from([0x1f, 0x8b, 0x08]);

/** What the slim form of a stored release keeps. */
interface Slim extends KubeObject {
  /** The kinds in its manifest, such as `FlowSchema of flowcontrol.apiserver.k8s.io/v1beta3`. */
  readonly found?: readonly string[] | 'unreadable';
}

/** Resolves with a warning for each API that the target lacks, and with the stores that could not be read. */
export async function releaseFindings(
  { list }: Pick<Asking, 'list'>,
  target: MinorFacts,
): Promise<FoundBy[]> {
  const choices = { labelSelector: DEPLOYED, pageSize: PAGE };
  const asked = await Promise.all([
    list<Secret>(secrets, { ...choices, slim: (object) => slimmed(object, decoded(object.data)) }),
    list<ConfigMap>(configMaps, { ...choices, slim: (object) => slimmed(object, object.data) }),
  ]);
  const releases = asked.flatMap((each) => (each.kind === 'answer' ? each.value : [])) as Slim[];
  const unread = asked.flatMap((each): FoundBy[] =>
    each.kind === 'unknown'
      ? [{ state: 'unknown', message: `the stored releases of Helm: ${each.why}` }]
      : [],
  );
  const users = new Map<string, string[]>();
  for (const release of releases)
    for (const api of release.found === 'unreadable' ? [] : (release.found ?? []))
      if (isLost(api, target)) users.getOrInsert(api, []).push(nameOf(release));
  const unreadable = releases.filter((release) => release.found === 'unreadable');
  return [
    ...unread,
    ...(unreadable.length === 0 ? [] : [unreadableFinding(unreadable)]),
    ...[...users].map(([api, names]) => lostFinding(api, names, target)),
  ];
}

function unreadableFinding(releases: readonly Slim[]): FoundBy {
  return {
    state: 'unknown',
    object: `release of Helm ${listed(releases.map(nameOf))}`,
    message: `${counted(releases.length, 'stored release')} cannot be read`,
  };
}

function lostFinding(api: string, names: readonly string[], { minor }: MinorFacts): FoundBy {
  return {
    state: 'warning',
    object: `release of Helm ${listed(names)}`,
    message: `its stored manifest has ${api}, which Kubernetes 1.${minor} does not serve, so \`helm upgrade\` of it fails there`,
    cure: 'upgrade the chart first to a version without it, or change the stored release with the plugin mapkubeapis of Helm',
  };
}

/** Returns the namespace and the name of the release, as `helm list` shows them. */
function nameOf({ metadata: { name, namespace, labels } }: Slim): string {
  return printable(keyAt(labels?.['name'] ?? name, namespace));
}

/** Returns true if Kubernetes has the group, and the target has no such kind in it. */
function isLost(api: string, target: MinorFacts): boolean {
  const [kind = '', apiVersion = ''] = api.split(' of ');
  return isBuiltIn(apiVersion) && !target.serves(apiVersion, kind);
}

/** Returns true if the group of the API is one of Kubernetes itself. Any other group may be served by anybody. */
function isBuiltIn(apiVersion: string): boolean {
  const [group, version] = apiVersion.split('/');
  if (version === undefined) return false;
  for (let minor = OLDEST_KNOWN; minor <= NEWEST_KNOWN; minor++)
    if (factsOfMinor(minor)?.apis.some(([known]) => known.split('/')[0] === group)) return true;
  return false;
}

/** The values of a Secret are base64 once more than those of a ConfigMap. */
function decoded(data: Secret['data'] = {}): Record<string, string> {
  return { release: Buffer.from(data['release'] ?? '', 'base64').toString('latin1') };
}

function slimmed<T extends KubeObject>({ metadata }: T, data: Record<string, string> = {}): T {
  const { name, namespace, labels } = metadata;
  const slim: Slim = {
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      labels: { name: labels?.['name'] ?? name },
    },
    found: apisIn(data['release'] ?? ''),
  };
  return slim as unknown as T;
}

/** Returns the kinds in the manifest of a stored release, which is JSON in gzip in base64. */
function apisIn(stored: string): readonly string[] | 'unreadable' {
  const manifest = manifestIn(stored);
  if (manifest === undefined) return 'unreadable';
  const apis = manifest.split(/^---.*$/m).flatMap((document) => {
    const [, apiVersion] = /^apiVersion: *["']?([\w./-]{1,200})/m.exec(document) ?? [];
    const [, kind] = /^kind: *["']?(\w{1,200})/m.exec(document) ?? [];
    return apiVersion === undefined || kind === undefined ? [] : [`${kind} of ${apiVersion}`];
  });
  return [...new Set(apis)];
}

function manifestIn(stored: string): string | undefined {
  const bytes = Buffer.from(stored, 'base64');
  try {
    const isCompressed = bytes.subarray(0, GZIP.length).equals(GZIP);
    const json = isCompressed ? gunzipSync(bytes, { maxOutputLength: MOST_MANIFEST_BYTES }) : bytes;
    const release = parseJson(json.toString());
    return isRecord(release) && typeof release['manifest'] === 'string'
      ? release['manifest']
      : undefined;
  } catch {
    return undefined;
  }
}
