/** Reads single objects, and lists with selectors, pages and resource versions. */
import { isRecord } from '../../src/util/json.ts';
import type { Cluster, Resource } from './cluster.ts';
import {
  ApiFailure,
  badRequest,
  type Cause,
  cause,
  expired,
  invalidOptions,
  notFound,
} from './failure.ts';
import { groupVersion } from './kinds/kind.ts';
import { flag, integer, type Target } from './request.ts';
import { fieldPredicate, labelPredicate, nameSelected, type Predicate } from './selector.ts';
import { keyOf, type Version } from './store.ts';

/** Returns the object. Throws 404 if it does not exist. */
export function getObject(
  { kind, collection }: Resource,
  { namespace, name = '' }: Target,
): Version {
  const version = collection.get(keyOf(namespace, name));
  if (!version) throw notFound(kind, name);
  return version;
}

/** The part of a collection that a list or a watch selects. */
export interface Selection {
  readonly namespace: string | undefined;
  readonly matches: Predicate;
  readonly selective: boolean;
  /** The key of the object if only one object can be selected; undefined if several objects can be selected. */
  readonly only: string | undefined;
}

/** Throws 400 for selectors that do not parse and for fields that the kind does not offer. */
export function selectionOf(resource: Resource, query: URLSearchParams, target: Target): Selection {
  const labels = labelPredicate(query.get('labelSelector'));
  const fields = fieldPredicate(query.get('fieldSelector'), resource.kind);
  const { namespace } = target;
  const name = nameSelected(query.get('fieldSelector'));
  const isOne = name !== undefined && resource.kind.namespaced === (namespace !== undefined);
  return {
    namespace,
    only: isOne ? keyOf(namespace, name) : undefined,
    matches: (object) =>
      (namespace === undefined || object.metadata.namespace === namespace) &&
      labels(object) &&
      fields(object),
    selective: Boolean(query.get('labelSelector')) || Boolean(query.get('fieldSelector')),
  };
}

const MATCHES = ['Exact', 'NotOlderThan'];

/** Refuses options that contradict each other. A real server also does this before all other checks. */
export function validateListOptions(query: URLSearchParams): void {
  const causes = flag(query, 'watch') ? watchFaults(query) : listFaults(query);
  if (causes.length > 0) throw invalidOptions('ListOptions', causes);
}

const matchForbidden = (why: string): Cause => cause.forbidden('resourceVersionMatch', why);

function listFaults(query: URLSearchParams): Cause[] {
  const match = query.get('resourceVersionMatch') ?? '';
  const version = query.get('resourceVersion') ?? '';
  const causes: Cause[] = [];
  if (match !== '') {
    if (version === '')
      causes.push(
        matchForbidden('resourceVersionMatch is forbidden unless resourceVersion is provided'),
      );
    if (query.get('continue'))
      causes.push(matchForbidden('resourceVersionMatch is forbidden when continue is provided'));
    if (!MATCHES.includes(match))
      causes.push(cause.notSupported('resourceVersionMatch', match, [...MATCHES, '']));
    if (match === 'Exact' && version === '0') {
      causes.push(
        matchForbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
      );
    }
  }
  if (query.has('sendInitialEvents')) {
    causes.push(cause.forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  return causes;
}

function watchFaults(query: URLSearchParams): Cause[] {
  const match = query.get('resourceVersionMatch') ?? '';
  const initial = query.has('sendInitialEvents');
  const causes: Cause[] = [];
  if (initial && match !== 'NotOlderThan') {
    causes.push(
      matchForbidden('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'),
    );
  }
  if (match === '') return causes;
  if (!initial) {
    causes.push(
      matchForbidden(
        'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
      ),
    );
  }
  if (match !== 'NotOlderThan')
    causes.push(cause.notSupported('resourceVersionMatch', match, ['NotOlderThan']));
  if (query.get('continue'))
    causes.push(matchForbidden('resourceVersionMatch is forbidden when continue is provided'));
  return causes;
}

/** Returns the revision that a query names; undefined if it names no revision. */
export function parseRevision(text: string | null): number | undefined {
  if (text === null || text === '') return undefined;
  if (/^\d+$/.test(text)) return Number(text);
  throw badRequest(`invalid resource version: ${revisionFault(text)}`);
}

/** Returns the message of the server for a revision that is not a number. */
export function revisionFault(text: string): string {
  const shown = JSON.stringify(text);
  return `resourceVersion: Invalid value: ${shown}: strconv.ParseUint: parsing ${shown}: invalid syntax`;
}

/**
 * A real server waits three seconds for the revision. This server does not wait, because there is no other replica from
 * which it could get the revision.
 */
export function tooLargeRevision(wanted: number, current: number): ApiFailure {
  const message = `Timeout: Too large resource version: ${wanted}, current: ${current}`;
  const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }];
  return new ApiFailure(504, 'Timeout', message, { causes, retryAfterSeconds: 1 });
}

interface Page {
  readonly revision: number;
  /** The key of the last object of the previous page; '' for the first page. */
  readonly after: string;
}

/**
 * Returns a list in the order of keys, as text. It joins the stored texts of the objects instead of serialising the
 * objects again.
 */
export function listObjects(
  cluster: Cluster,
  resource: Resource,
  query: URLSearchParams,
  target: Target,
): string {
  validateListOptions(query);
  const selection = selectionOf(resource, query, target);
  // In a real server, a list "at any revision" comes from a cache that does not support pages.
  const limit = query.get('resourceVersion') === '0' ? 0 : Math.max(0, integer(query, 'limit'));
  const page = pageOf(cluster, resource, query, limit);
  const candidates = within(resource.collection.at(page.revision), selection.namespace, page.after);
  const picked: Version[] = [];
  let seen = 0;
  for (const version of candidates) {
    if (limit > 0 && picked.length === limit) break;
    seen += 1;
    if (selection.matches(version.object)) picked.push(version);
  }
  const left = candidates.length - seen;
  const last = picked.at(-1);
  const more = left > 0 && last !== undefined;
  return listText(resource, picked, {
    resourceVersion: String(page.revision),
    ...(more
      ? { continue: encodeContinue(page.revision, last.key) }
      : !resource.kind.builtin && { continue: '' }),
    ...(more && !selection.selective && { remainingItemCount: left }),
  });
}

/** Returns the objects that a list without pages would contain now. */
export function selectedObjects(
  resource: Resource,
  query: URLSearchParams,
  target: Target,
): Version[] {
  const { matches } = selectionOf(resource, query, target);
  return [...resource.collection.values()].filter(({ object }) => matches(object));
}

function within(
  versions: readonly Version[],
  namespace: string | undefined,
  after: string,
): readonly Version[] {
  if (namespace === undefined && after === '') return versions;
  const prefix = namespace === undefined ? '' : `${namespace}/`;
  return versions.filter(({ key }) => key > after && key.startsWith(prefix));
}

function listText(
  { kind }: Resource,
  picked: readonly Version[],
  metadata: Record<string, unknown>,
): string {
  const items = picked.map((version) => (kind.builtin ? version.members : version.text)).join(',');
  const names = `"kind":${JSON.stringify(kind.listKind)},"apiVersion":${JSON.stringify(groupVersion(kind))}`;
  return `{${names},"metadata":${JSON.stringify(metadata)},"items":[${items}]}`;
}

function pageOf(
  cluster: Cluster,
  { collection }: Resource,
  query: URLSearchParams,
  limit: number,
): Page {
  const { current } = cluster.revisions;
  const token = query.get('continue') ?? '';
  const wanted = parseRevision(query.get('resourceVersion'));
  if (token !== '') {
    const page = decodeContinue(token);
    if (wanted !== undefined && wanted !== 0) {
      throw badRequest('specifying resource version is not allowed when using continue');
    }
    // This is the token that the server offers after another token has expired. It continues the list from the same key
    // in the newest state.
    if (page.revision === -1) return { ...page, revision: current };
    if (!collection.remembers(page.revision)) throw continueExpired(page.after);
    return page;
  }
  if (wanted === undefined || wanted === 0) return { revision: current, after: '' };
  if (wanted > current) throw tooLargeRevision(wanted, current);
  const match = query.get('resourceVersionMatch') ?? '';
  if (match !== 'Exact' && (match !== '' || limit === 0)) return { revision: current, after: '' };
  if (!collection.remembers(wanted))
    throw expired('The resourceVersion for the provided list is too old.');
  return { revision: wanted, after: '' };
}

const CONTINUE_EXPIRED =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without ' +
  'the continue parameter, or use the continue token in this response to retrieve the remainder of the results. ' +
  'Continuing with the provided token results in an inconsistent list - objects that were created, modified, or ' +
  'deleted between the time the first chunk was returned and now may show up in the list.';

function continueExpired(after: string): ApiFailure {
  const failure = expired(CONTINUE_EXPIRED);
  failure.status.metadata['continue'] = encodeContinue(-1, after);
  return failure;
}

function encodeContinue(revision: number, after: string): string {
  const token = { v: 'meta.k8s.io/v1', rv: revision, start: `${after}\0` };
  return Buffer.from(JSON.stringify(token)).toString('base64url');
}

function decodeContinue(text: string): Page {
  let token: unknown;
  try {
    token = JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    throw badRequest('invalid continue token: continue key is not valid');
  }
  if (!isRecord(token) || token['v'] !== 'meta.k8s.io/v1' || typeof token['start'] !== 'string') {
    const why = 'server does not recognize this encoded version';
    throw badRequest(`invalid continue token: continue key is not valid: ${why}`);
  }
  return { revision: Number(token['rv']), after: token['start'].replace(/\0$/, '') };
}
