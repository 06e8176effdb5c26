/**
 * Owns Jobs and Secrets: as much of them as whoever carries out work in Jobs can meet. The template of a Job's pods is kept as
 * it was given, and nobody makes pods of it: that is a controller's work, not an API server's.
 */
import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../util/json.ts';
import { builtinKind } from './builtin-kind.ts';
import * as shape from './builtin-shape.ts';
import { cause } from './failure.ts';

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

export const jobKind = builtinKind({ group: 'batch', version: 'v1', plural: 'jobs', namespaced: true }, shape.job, {
  generation: true,
  status: () => ({}),
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
    const templateOf = ({ spec }: Record<string, unknown>): unknown => (isRecord(spec) ? spec['template'] : undefined);
    if (!old || isDeepStrictEqual(templateOf(job), templateOf(old))) return [];
    return [cause.invalid('spec.template', templateOf(job), 'field is immutable')];
  },
});

export const secretKind = builtinKind({ group: '', version: 'v1', plural: 'secrets', namespaced: true }, shape.secret, {
  unconditionalUpdate: true,
  default(secret) {
    const { stringData, data } = secret as { stringData?: Record<string, string>; data?: Record<string, string> };
    const texts = Object.entries(stringData ?? {}).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    if (texts.length > 0) secret['data'] = { ...data, ...Object.fromEntries(texts) };
    delete secret['stringData'];
    secret['type'] ??= 'Opaque';
  },
});
