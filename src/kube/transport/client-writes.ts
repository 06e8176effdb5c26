/** Implements the writing half of the KubeClient over HTTP. Each method is one call. */
import type { Call, Caller, KubeClient, PatchType, WriteOptions } from '../client.ts';
import { type Address, pathOf, pods, type Resource } from '../resources.ts';
import { type CallOptions, callsOf, objectCheck } from './client-calls.ts';

const CONTENT_TYPES: Readonly<Record<PatchType, string>> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  // JSON is valid YAML, and every supported server accepts this type.
  apply: 'application/apply-patch+yaml',
};

const METHODS = { create: 'POST', update: 'PUT', patch: 'PATCH' } as const;

/** Returns the methods that write. */
export function writesOver(
  caller: Caller,
  own: CallOptions,
): Pick<KubeClient, 'create' | 'replace' | 'patch' | 'delete' | 'evict'> {
  const { callAt, callFor } = callsOf(own);
  const writeCall = writeCallOf(own);
  return {
    async create(resource, object, options = {}) {
      const { namespace, name } = object.metadata;
      const place = options.subresource === undefined ? { namespace } : { namespace, name };
      const content = { body: object, query: { dryRun: dryRunOf(options) } };
      return await caller.json(writeCall('create', resource, place, options, content));
    },
    replace: async (resource, object, options = {}) =>
      await caller.json(writeCall('update', resource, object.metadata, options, { body: object })),
    async patch(resource, name, patch, options) {
      const force = options.type === 'apply' ? options.force : undefined;
      const dryRun = dryRunOf(options);
      const content = {
        body: patch,
        contentType: CONTENT_TYPES[options.type],
        query: { force, dryRun },
      };
      return await caller.json(writeCall('patch', resource, { name }, options, content));
    },
    async delete(resource, name, options = {}) {
      const { uid, resourceVersion, propagationPolicy, gracePeriodSeconds } = options;
      const preconditions =
        uid === undefined && resourceVersion === undefined ? undefined : { uid, resourceVersion };
      const body = {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        propagationPolicy,
        gracePeriodSeconds,
        preconditions,
      };
      await caller.json({
        ...callFor('delete', resource, options, { name }),
        method: 'DELETE',
        body,
      });
    },
    async evict({ name, namespace, uid }, options = {}) {
      const { gracePeriodSeconds } = options;
      const path = pathOf(pods, { namespace, name, subresource: 'eviction' });
      const deleteOptions = {
        gracePeriodSeconds,
        ...(uid === undefined ? {} : { preconditions: { uid } }),
      };
      const body = {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name, namespace },
        deleteOptions,
      };
      await caller.json({
        ...callAt('create', 'pods/eviction', path, options),
        method: 'POST',
        body,
      });
    },
  };
}

/** Returns the parameter that makes the API server only check a write; undefined if the write must take effect. */
function dryRunOf({ dryRun }: { readonly dryRun?: boolean | undefined }): 'All' | undefined {
  return dryRun === true ? 'All' : undefined;
}

/**
 * Returns a function that makes calls that create or change an object. The namespace of `options` has precedence over
 * the namespace of `place`.
 */
function writeCallOf(own: CallOptions) {
  const { callAt } = callsOf(own);
  return (
    verb: keyof typeof METHODS,
    resource: Resource,
    place: Address,
    options: WriteOptions,
    content: Pick<Call, 'body' | 'contentType' | 'query'>,
  ) => {
    const {
      subresource,
      namespace = place.namespace,
      fieldManager = own.fieldManager ?? 'refit',
    } = options;
    const path = pathOf(resource, { namespace, name: place.name, subresource });
    const label = subresource === undefined ? resource.plural : `${resource.plural}/${subresource}`;
    // A subresource may answer with an object of another kind.
    const check = objectCheck(subresource === undefined ? resource.kind : undefined);
    const query = { fieldManager, ...content.query };
    return {
      ...callAt(verb, label, path, options),
      method: METHODS[verb],
      check,
      ...content,
      query,
    };
  };
}
