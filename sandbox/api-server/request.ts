/** Reads the meaning of a request from its method, path and query: verb, resource, name and options. */
import { badRequest, cause, invalidOptions } from './failure.ts';

/** The resource or object that a path names. */
export interface Target {
  readonly group: string;
  readonly version: string;
  /** Empty if the path names only a group and a version. */
  readonly plural: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

/** A request whose body has been read to its end. */
export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  /** Undefined if the path names no group and version. */
  readonly target: Target | undefined;
  readonly query: URLSearchParams;
  /** The media type without parameters; '' if the client sent no media type. */
  readonly contentType: string;
  readonly accept: string;
  readonly userAgent: string;
  readonly body: string;
  /** Warnings for the client, also if the request fails. */
  readonly warnings: string[];
}

/**
 * Reads `/api/v1/…` and `/apis/GROUP/VERSION/…`. Returns undefined for every other path. Throws URIError if an escape
 * sequence is invalid.
 */
export function parseTarget(path: string): Target | undefined {
  const parts = path.split('/').filter(Boolean).map(decodeURIComponent);
  const root = parts.shift();
  if (root !== 'api' && root !== 'apis') return undefined;
  const group = root === 'api' ? '' : parts.shift();
  const version = parts.shift();
  if (group === undefined || version === undefined) return undefined;
  // `/namespaces/x` alone, and its subresources, address the Namespace itself.
  const [first, , third = 'status'] = parts;
  const within = first === 'namespaces' && third !== 'status' && third !== 'finalize';
  const [namespace] = within ? parts.splice(0, 2).slice(1) : [];
  const [plural = '', name, ...rest] = parts;
  const subresource = rest.length === 0 ? undefined : rest.join('/');
  return { group, version, plural, namespace, name, subresource };
}

/** Absent, `false` and `0` are false, everything else is true: the rule of Go's query decoder. */
export function flag(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  return value !== null && value !== 'false' && value !== '0';
}

/** Returns a whole number from the query; 0 if it is absent. */
export function integer(query: URLSearchParams, name: string): number {
  const value = query.get(name) ?? '0';
  if (!/^[+-]?\d+$/.test(value))
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(value)}: invalid syntax`);
  return Number(value);
}

const VERBS: Readonly<Record<string, [string, string]>> = {
  GET: ['list', 'get'],
  HEAD: ['list', 'get'],
  POST: ['create', 'create'],
  PUT: ['update', 'update'],
  PATCH: ['patch', 'patch'],
  DELETE: ['deletecollection', 'delete'],
};

/** Returns the verb as the audit log and RBAC name it. */
export function verbOf(
  { method, query }: Pick<ApiRequest, 'method' | 'query'>,
  name: string | undefined,
): string {
  const [ofAll, ofOne] = VERBS[method] ?? [method, method];
  const verb = name === undefined ? ofAll : ofOne;
  return (verb === 'list' || verb === 'get') && flag(query, 'watch') ? 'watch' : verb;
}

/** The options that POST, PUT and PATCH have in common. */
export interface WriteOptions {
  readonly dryRun: boolean;
  /** True if unknown members are refused instead of dropped. */
  readonly strict: boolean;
  /** The field manager. */
  readonly manager: string;
  /** True if the object already contains the field ownership that server-side apply has computed. */
  readonly applied: boolean;
  readonly warnings: string[];
}

const VALIDATIONS = ['', 'Ignore', 'Strict', 'Warn'];

/** `kind` is the name of these options in a refusal: CreateOptions, UpdateOptions, PatchOptions. */
export function writeOptions(
  { query, userAgent, warnings }: ApiRequest,
  kind: string,
): WriteOptions {
  const dryRun = query.getAll('dryRun').filter((value) => value !== '');
  const validation = query.get('fieldValidation') ?? '';
  const causes = dryRun.every((value) => value === 'All')
    ? []
    : [cause.notSupported('dryRun', dryRun, ['All'])];
  if (!VALIDATIONS.includes(validation))
    causes.push(cause.notSupported('fieldValidation', validation, VALIDATIONS));
  if (causes.length > 0) throw invalidOptions(kind, causes);
  return {
    dryRun: dryRun.length > 0,
    strict: validation === 'Strict',
    applied: false,
    manager: query.get('fieldManager') || userAgent.split('/')[0] || 'unknown',
    warnings: validation === 'Ignore' ? [] : warnings,
  };
}
