/**
 * Owns Jobs and Secrets: as much of them as whoever carries out work in Jobs can meet. The template of a Job's pods is kept as
 * it was given, and nobody makes pods of it: that is a controller's work, not an API server's.
 */
import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../util/json.ts';
import { builtinKind } from './builtin-kind.ts';
import { labelSelector, objectMeta } from './builtin-shape.ts';
import { cause } from './failure.ts';
import { mapOf, pointerTo, struct } from './go-shape.ts';

const jobShape = struct('Job', {
  apiVersion: 'string',
  kind: 'string',
  metadata: objectMeta,
  spec: struct('JobSpec', {
    parallelism: '*int32',
    completions: '*int32',
    activeDeadlineSeconds: '*int64',
    podFailurePolicy: 'raw',
    successPolicy: 'raw',
    backoffLimit: '*int32',
    backoffLimitPerIndex: '*int32',
    maxFailedIndexes: '*int32',
    selector: pointerTo(labelSelector),
    manualSelector: '*bool',
    template: struct('PodTemplateSpec', { metadata: objectMeta, spec: 'raw' }),
    ttlSecondsAfterFinished: '*int32',
    completionMode: '*string',
    suspend: '*bool',
    podReplacementPolicy: '*string',
    managedBy: '*string',
  }),
  status: struct('JobStatus', {
    conditions: [
      struct('JobCondition', {
        type: 'string!',
        status: 'string!',
        lastProbeTime: 'time',
        lastTransitionTime: 'time',
        reason: 'string',
        message: 'string',
      }),
    ],
    startTime: '*time',
    completionTime: '*time',
    active: 'int32',
    succeeded: 'int32',
    failed: 'int32',
    terminating: '*int32',
    completedIndexes: 'string',
    failedIndexes: '*string',
    uncountedTerminatedPods: 'raw',
    ready: '*int32',
  }),
});

const DEFAULTS = {
  parallelism: 1,
  completions: 1,
  backoffLimit: 6,
  manualSelector: false,
  completionMode: 'NonIndexed',
  suspend: false,
  podReplacementPolicy: 'TerminatingOrFailed',
};

/** Pods find their Job by these, under old names and new. */
const ownLabels = (uid: string, name: string): Record<string, string> =>
  Object.fromEntries(
    ['', 'batch.kubernetes.io/'].flatMap((prefix) => [
      [`${prefix}controller-uid`, uid],
      [`${prefix}job-name`, name],
    ]),
  );

export const jobKind = builtinKind(
  { group: 'batch', version: 'v1', plural: 'jobs', namespaced: true, shape: jobShape },
  {
    hasStatus: true,
    generation: true,
    initial: () => ({}),
    default(job, old) {
      if (old) return;
      const { uid = '', name } = job.metadata;
      const spec = job['spec'] as { template: { metadata: { labels?: Record<string, string> } } };
      const { metadata } = spec.template;
      job['spec'] = {
        ...DEFAULTS,
        ...spec,
        selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } },
        template: {
          ...spec.template,
          metadata: { ...metadata, labels: { ...metadata.labels, ...ownLabels(uid, name) } },
        },
      };
    },
    validate(job, old) {
      const templateOf = ({ spec }: Record<string, unknown>): unknown =>
        isRecord(spec) ? spec['template'] : undefined;
      if (!old || isDeepStrictEqual(templateOf(job), templateOf(old))) return [];
      return [cause.invalid('spec.template', templateOf(job), 'field is immutable')];
    },
  },
);

export const secretKind = builtinKind(
  {
    group: '',
    version: 'v1',
    plural: 'secrets',
    namespaced: true,
    shape: struct('Secret', {
      apiVersion: 'string',
      kind: 'string',
      metadata: objectMeta,
      immutable: '*bool',
      data: mapOf('string'),
      stringData: mapOf('string'),
      type: 'string',
    }),
  },
  {
    unconditionalUpdate: true,
    default(secret) {
      const { stringData, data } = secret as { stringData?: Record<string, string>; data?: Record<string, string> };
      const texts = Object.entries(stringData ?? {}).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
      if (texts.length > 0) secret['data'] = { ...data, ...Object.fromEntries(texts) };
      delete secret['stringData'];
      secret['type'] ??= 'Opaque';
    },
  },
);
