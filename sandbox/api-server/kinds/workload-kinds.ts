/**
 * Jobs and Secrets, as far as a dialect with Jobs needs them. The pod template of a Job is stored as given. No pods are
 * created from it, because a controller creates pods, not an API server.
 */
import { isDeepStrictEqual } from 'node:util';
import { cause } from '../failure.ts';
import type { ApiObject } from '../store.ts';
import { builtinKind } from './builtin-kind.ts';
import * as shape from './builtin-shape.ts';
import { validateFinished } from './finished-job.ts';

const DEFAULTS = {
  parallelism: 1,
  backoffLimit: 6,
  manualSelector: false,
  completionMode: 'NonIndexed',
  suspend: false,
  podReplacementPolicy: 'TerminatingOrFailed',
};

interface JobSpec {
  parallelism?: number;
  completions?: number;
  template: { metadata: { labels?: Record<string, string> } };
}

const specOf = (job: ApiObject): JobSpec => job['spec'] as JobSpec;

/** The labels that connect pods with their Job, under the old and the new names. */
const ownLabels = (uid: string, name: string): Record<string, string> =>
  Object.fromEntries(
    ['', 'batch.kubernetes.io/'].flatMap((prefix) => [
      [`${prefix}controller-uid`, uid],
      [`${prefix}job-name`, name],
    ]),
  );

export const jobKind = builtinKind(
  { group: 'batch', version: 'v1', plural: 'jobs', namespaced: true },
  shape.job,
  {
    categories: ['all'],
    unconditionalUpdate: true,
    generation: true,
    status: () => ({}),
    default(job, old) {
      if (old) return;
      const { uid = '', name } = job.metadata;
      const { template, parallelism, completions } = specOf(job);
      const labels = { ...template.metadata.labels, ...ownLabels(uid, name) };
      job.metadata.labels ??= labels;
      job['spec'] = {
        ...DEFAULTS,
        // If only `parallelism` is given, `completions` stays undefined.
        ...(parallelism === undefined && completions === undefined ? { completions: 1 } : {}),
        ...specOf(job),
        selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } },
        template: { ...template, metadata: { ...template.metadata, labels } },
      };
    },
    validate(job, old) {
      if (!old) return [];
      if (isDeepStrictEqual(specOf(job).template, specOf(old).template))
        return validateFinished(job, old);
      return [cause.invalid('spec.template', specOf(job).template, 'field is immutable')];
    },
  },
);

export const secretKind = builtinKind(
  { group: '', version: 'v1', plural: 'secrets', namespaced: true },
  shape.secret,
  {
    unconditionalUpdate: true,
    default(secret) {
      const { stringData = {}, data } = secret as {
        stringData?: Record<string, string>;
        data?: Record<string, string>;
      };
      const texts = Object.entries(stringData).map(([key, text]) => [
        key,
        Buffer.from(text).toString('base64'),
      ]);
      if (texts.length > 0) secret['data'] = { ...data, ...Object.fromEntries(texts) };
      delete secret['stringData'];
      secret['type'] ??= 'Opaque';
    },
  },
);
