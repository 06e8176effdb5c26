/**
 * Checks whether the target version still serves the APIs in use. An object that exists only in a removed version is lost
 * to everybody, and a program that uses a removed version fails.
 */
import { type KubeObject, keyOf } from '../../kube/resources.ts';
import { resourceIn } from '../../kube/served-kinds.ts';
import { parseJson } from '../../util/json.ts';
import { counted, listed } from '../../util/phrases.ts';
import { parseVersion } from '../../util/version.ts';
import {
  factsOf,
  factsOfMinor,
  NEWEST_KNOWN,
  nearestFactsOf,
  OLDEST_KNOWN,
} from '../../versions/facts.ts';
import type { MinorFacts } from '../../versions/minor-facts.ts';
import { answer, type ReadResult } from '../asking.ts';
import type { Check, ReadyContext } from '../context.ts';
import { type FoundBy, grouped } from '../finding.ts';
import { releaseFindings } from '../helm-releases.ts';

export const checkApis: Check = async (context) => {
  const target = nearestFactsOf(context.to);
  if (target === undefined)
    return [
      {
        state: 'unknown',
        message: `this Refit knows the APIs of 1.${OLDEST_KNOWN} to 1.${NEWEST_KNOWN}, and not those of ${context.to}`,
        cure: 'use a Refit that knows this version',
      },
    ];
  const lost = apisLostIn(target);
  const isKnown = factsOf(context.to) !== undefined;
  const unknown: FoundBy[] = isKnown
    ? []
    : [
        {
          state: 'unknown',
          message: `this Refit knows the APIs of 1.${OLDEST_KNOWN} to 1.${NEWEST_KNOWN}, and not those of ${context.to}, so they are judged as for 1.${target.minor}`,
          cure: 'use a Refit that knows this version',
        },
      ];
  const [objects, requests, releases] = await Promise.all([
    Promise.all(lost.map(async (api) => await objectFindings(context, api))),
    requestFindings(context),
    context.readsHelmReleases ? releaseFindings(context, target) : [],
  ]);
  const found = [...unknown, ...grouped([...objects.flat(), ...requests, ...releases])];
  if (found.length > 0) return found;
  const last = context.readsHelmReleases
    ? 'no request, and no stored release of Helm'
    : 'and no request';
  return [{ state: 'ok', message: `no object, ${last} uses a removed API of ${context.to}` }];
};

/** An API that a known earlier minor version serves, and the target does not. */
interface LostApi {
  readonly apiVersion: string;
  readonly kind: string;
  /** The first minor version without it. */
  readonly since: number;
  /** The versions of the same group in which the target serves the kind. They are empty if it serves the kind no more. */
  readonly successors: readonly string[];
}

/** Returns the APIs that some known minor version before the target serves, and the target does not. */
export function apisLostIn(target: MinorFacts): LostApi[] {
  const lost = new Map<string, LostApi>();
  for (let minor = OLDEST_KNOWN; minor < target.minor; minor++)
    for (const [apiVersion, kind] of factsOfMinor(minor)?.apis ?? []) {
      if (target.serves(apiVersion, kind)) continue;
      const [group = ''] = apiVersion.split('/');
      const successors = target.apis
        .filter(([other, name]) => name === kind && other.startsWith(`${group}/`))
        .map(([other]) => other);
      // A later minor version may have the API again, so the last minor version that has it counts.
      lost.set(`${apiVersion} ${kind}`, { apiVersion, kind, since: minor + 1, successors });
    }
  return [...lost.values()];
}

/** Asks whether objects of the kind exist, and whether somebody writes them in the removed version. */
async function objectFindings(context: ReadyContext, api: LostApi): Promise<FoundBy[]> {
  const { apiVersion, kind, since, successors } = api;
  const listedKind = await resourceFor(context, apiVersion, kind);
  const what = `${kind} of ${apiVersion}`;
  if (listedKind.kind === 'unknown') return [{ state: 'unknown', message: listedKind.why }];
  // The API server serves no such kind, so nobody can have such objects, or use them.
  if (listedKind.value === undefined) return [];
  const objects = await context.list(listedKind.value, { slim: withoutContent });
  if (objects.kind === 'unknown') return [{ state: 'unknown', message: objects.why }];
  const removed = `Kubernetes 1.${since} no longer serves ${what}`;
  if (objects.value.length === 0) return [];
  const servedNow = await Promise.all(
    successors.map(async (each) => await resourceFor(context, each, kind)),
  );
  const isMovable = servedNow.some((asked) => asked.kind === 'answer' && asked.value !== undefined);
  if (!isMovable)
    return [
      {
        state: 'blocker',
        object: `${kind} ${listed(objects.value.map(keyOf))}`,
        message: `${removed}, and this cluster serves no other version that 1.${since} has, so ${counted(objects.value.length, 'object')} would be lost`,
        cure: 'save what you need of them, and delete them before the upgrade',
      },
    ];
  const writers = objects.value.flatMap((object) => writersIn(object, apiVersion));
  if (writers.length === 0) return [];
  const used = objects.value.filter((object) => writersIn(object, apiVersion).length > 0);
  return [
    {
      state: 'warning',
      object: `${kind} ${listed(used.map(keyOf))}`,
      message: `${removed}, and ${listed([...new Set(writers)])} wrote it in this version`,
      cure: `change what writes it to ${successors.join(' or ')}`,
    },
  ];
}

/** Resolves with the resource; undefined if the API server does not serve the kind. */
async function resourceFor(
  { text }: ReadyContext,
  apiVersion: string,
  kind: string,
): Promise<ReadResult<ReturnType<typeof resourceIn>>> {
  const asked = await text(`/apis/${apiVersion}`);
  if (asked.kind === 'unknown') return asked;
  return answer(
    asked.value === undefined ? undefined : resourceIn(parseJson(asked.value), apiVersion, kind),
  );
}

interface ManagedFields {
  readonly manager?: string;
  readonly apiVersion?: string;
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** Keeps of an object what tells who wrote it. */
function withoutContent(object: KubeObject): KubeObject {
  const { name, namespace, managedFields = [], annotations = {} } = object.metadata;
  const applied = annotations[LAST_APPLIED];
  return {
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      managedFields: managedFields.map((each) => {
        const { manager = '', apiVersion = '' } = each as ManagedFields;
        return { manager, apiVersion };
      }),
      ...(applied !== undefined && { annotations: { [LAST_APPLIED]: applied } }),
    },
  };
}

/** Returns the names of the programs that wrote the object in this version. */
function writersIn({ metadata }: KubeObject, apiVersion: string): string[] {
  const { managedFields = [], annotations = {} } = metadata;
  const managers = managedFields.flatMap((each) => {
    const { manager = 'somebody', apiVersion: written } = each as ManagedFields;
    return written === apiVersion ? [manager] : [];
  });
  const applied = parseJson(annotations[LAST_APPLIED] ?? '') as
    | { apiVersion?: unknown }
    | undefined;
  return applied?.apiVersion === apiVersion ? [...managers, 'kubectl apply'] : managers;
}

const REQUESTED = /^apiserver_requested_deprecated_apis\{([^}]*)\} ([\d.e+]+)$/gm;

/** Reads from the metrics of each API server which deprecated APIs somebody has requested since it started. */
async function requestFindings(context: ReadyContext): Promise<FoundBy[]> {
  const servers = await context.askServers('/metrics');
  const requested = new Map<string, { readonly removedIn: string; readonly servers: string[] }>();
  const findings: FoundBy[] = [];
  for (const { server, answer: asked } of servers) {
    if (asked.kind === 'unknown') {
      findings.push({
        state: 'unknown',
        object: `API server ${server}`,
        message: `whether somebody uses deprecated APIs: ${asked.why}`,
      });
      continue;
    }
    for (const [, labels = ''] of asked.value.matchAll(REQUESTED)) {
      const {
        group,
        version,
        resource,
        subresource,
        removed_release: removedIn = '',
      } = labelsIn(labels);
      const name = `${[resource, subresource].filter(Boolean).join('/')} of ${[group, version].filter(Boolean).join('/')}`;
      requested.getOrInsert(name, { removedIn, servers: [] }).servers.push(server);
    }
  }
  for (const [name, { removedIn, servers: at }] of requested)
    if (isReached(removedIn, context.to))
      findings.push({
        state: 'warning',
        object: name,
        message: `somebody has requested it since API server ${listed(at)} started, and Kubernetes ${removedIn} removed it`,
        cure: 'find the client in the audit log (k8s.io/removed-release), and update it',
      });
  return findings;
}

function labelsIn(text: string): Partial<Record<string, string>> {
  return Object.fromEntries(
    [...text.matchAll(/\b(\w{1,40})="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]),
  );
}

/** Returns true if the target lacks what is removed in this release, such as `1.38`. */
function isReached(release: string, to: string): boolean {
  const removed = parseVersion(`${release}.0`);
  const target = parseVersion(to);
  if (removed === undefined || target === undefined) return false;
  return (
    removed.major < target.major ||
    (removed.major === target.major && removed.minor <= target.minor)
  );
}
