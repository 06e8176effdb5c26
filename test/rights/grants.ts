/**
 * Compares the rights that the roles in deploy/ grant with the requests of Refit's processes in an API server's audit
 * log.
 */
import { parseAllDocuments } from 'yaml';

/** One verb on one resource or path, as one rule of one role grants it. */
export interface Grant {
  /** `<role> <verb> <resource>`, with the namespace, names and API group if the rule has them. */
  readonly title: string;
  readonly isUsedBy: (event: AuditEvent) => boolean;
}

/** The fields that are read from one line of the log. A request without `objectRef` is a request for a path. */
export interface AuditEvent {
  readonly verb: string;
  readonly requestURI: string;
  readonly userAgent?: string;
  readonly user: AuditUser;
  /** The user that kubectl's `--as` names. */
  readonly impersonatedUser?: AuditUser;
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  readonly annotations?: Readonly<Record<string, string>>;
}

interface AuditUser {
  readonly username: string;
  readonly groups?: readonly string[];
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly Rule[];
  readonly roleRef?: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly {
    readonly kind: string;
    readonly name: string;
    readonly namespace?: string;
  }[];
}

interface Rule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
  readonly verbs: readonly string[];
}

/** Names that the administrator fills in. */
const PLACEHOLDER = /CONTROL_NODE|NODE/g;
const REFIT = /^(refit\b|system-upgrade-controller)/;
/**
 * The users whose identity people or Jobs use to run kubectl. All other calls of kubectl come from the tests
 * themselves.
 */
const WITH_KUBECTL = /^(refit-viewer|system:serviceaccount:system-upgrade:system-upgrade)$/;

/** Reports whether the request was allowed, and came from a process for which the roles are made. */
function isAllowedRequest(event: AuditEvent): boolean {
  const { userAgent = '', annotations } = event;
  const withKubectl = userAgent.startsWith('kubectl/') && WITH_KUBECTL.test(userOf(event).username);
  return (
    (withKubectl || REFIT.test(userAgent)) &&
    annotations?.['authorization.k8s.io/decision'] === 'allow'
  );
}

export function grantsOf(text: string): Grant[] {
  const objects = parseAllDocuments(text).map((document) => document.toJS() as Manifest);
  return objects
    .filter(({ kind }) => /^(Cluster)?Role$/.test(kind))
    .flatMap((role) => {
      const bindings = objects.filter(
        ({ roleRef, metadata }) =>
          roleRef?.kind === role.kind &&
          roleRef.name === role.metadata.name &&
          metadata.namespace === role.metadata.namespace,
      );
      const subjects = new Set(
        bindings.flatMap((binding) => (binding.subjects ?? []).map(subjectName)),
      );
      const has = (event: AuditEvent): boolean => {
        const { username, groups = [] } = userOf(event);
        return [username, ...groups].some((name) =>
          [...subjects].some((subject) => isLike(subject, name)),
        );
      };
      return (role.rules ?? []).flatMap((rule) => grantsOfRule(role, rule, has));
    });
}

function userOf({ user, impersonatedUser }: AuditEvent): AuditUser {
  return impersonatedUser ?? user;
}

function subjectName({ kind, name, namespace }: NonNullable<Manifest['subjects']>[number]): string {
  return kind === 'ServiceAccount' ? `system:serviceaccount:${namespace}:${name}` : name;
}

function grantsOfRule(
  { metadata }: Manifest,
  rule: Rule,
  has: (event: AuditEvent) => boolean,
): Grant[] {
  const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [], verbs } = rule;
  const place = metadata.namespace === undefined ? '' : ` in ${metadata.namespace}`;
  const names = resourceNames.length > 0 ? ` ${resourceNames.join(',')}` : '';
  const title = (verb: string, what: string): string =>
    `${metadata.name}: ${verb} ${what}${names}${place}`;
  const onPaths = nonResourceURLs.flatMap((path) =>
    verbs.map((verb) => ({
      title: title(verb, path),
      isUsedBy: (event: AuditEvent) =>
        has(event) &&
        event.verb === verb &&
        event.objectRef === undefined &&
        isLike(path, event.requestURI.split('?')[0]),
    })),
  );
  const onObjects = apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      verbs.map((verb) => ({
        title: title(verb, group === '' ? resource : `${resource}.${group}`),
        isUsedBy: (event: AuditEvent) => {
          const { objectRef } = event;
          if (objectRef === undefined || !needs(event, verb) || !has(event)) return false;
          const { apiGroup = '', subresource, namespace, name } = objectRef;
          const found =
            subresource === undefined ? objectRef.resource : `${objectRef.resource}/${subresource}`;
          return (
            found === resource &&
            apiGroup === group &&
            (metadata.namespace === undefined || metadata.namespace === namespace) &&
            (resourceNames.length === 0 || resourceNames.some((each) => isLike(each, name)))
          );
        },
      })),
    ),
  );
  return [...onPaths, ...onObjects];
}

/**
 * Reports whether the request needs the verb. Some requests need two verbs: an apply that creates the object, and a
 * watch that begins with a list. Clients send such a watch to older API servers as two requests, a list and a watch.
 */
function needs({ verb, requestURI, responseStatus }: AuditEvent, wanted: string): boolean {
  if (wanted === 'create' && verb === 'patch') return responseStatus?.code === 201;
  if (wanted === 'list' && verb === 'watch') return requestURI.includes('sendInitialEvents=true');
  return verb === wanted;
}

/** Reports whether the text matches. A placeholder, or `*` at the end of a path, matches any text. */
function isLike(pattern: string, text = ''): boolean {
  const parts = pattern.replace(/\*$/, 'NODE').split(PLACEHOLDER);
  return new RegExp(`^${parts.map((part) => RegExp.escape(part)).join('.+')}$`).test(text);
}

/** Returns the sorted titles of the grants that no event needed. */
export function unusedOf(grants: readonly Grant[], log: Iterable<string>): string[] {
  const unused = new Set(grants);
  for (const line of log) {
    const event = JSON.parse(line) as AuditEvent;
    if (!isAllowedRequest(event)) continue;
    for (const grant of unused) if (grant.isUsedBy(event)) unused.delete(grant);
  }
  return [...unused].map(({ title }) => title).toSorted();
}
