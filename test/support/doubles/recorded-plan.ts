/** Prepares a recorded Plan for a test: keeps its spec, but uses files from the test's own server. */

import type { DownloadServer } from '../../../sandbox/hosts/download-server.ts';
import { type Plan, plans } from '../../../src/api/autopilot/plan.ts';
import { apiVersionOf } from '../../../src/kube/resources.ts';
import { type RecordedWrite, recordedWrites } from '../recordings.ts';
import { NEW } from './payload-files.ts';
import { signalled } from './write-lines.ts';

/** The paths of the files on the recordings' server, and the hashes of these files in the recorded Plans. */
export const FILES = {
  '/b/k0s-old': '02d258c3cf1485b2e03836202a0c4f2689fe4ed8f53c21b18cb950595aaa81c9',
  '/b/k0s-new': '96281e08f79d1b304b4a021187616767ad6e97b53e7c99a3c87b9cb02f68be4a',
  '/w/bundle20.tar': '55775b22f8eba10462729ed40ccf7f9f02cbbd4fa8cb967393c863b70c7b66d1',
} as const;

export interface Recording {
  /** The writes since the creation of the Plan, without the writes of people. */
  readonly writes: readonly RecordedWrite[];
  /** The names of the signalled targets, in the random order in which they were recorded. */
  readonly picks: readonly string[];
  /** The controllers that led, in order. */
  readonly leaders: readonly string[];
  plan(downloads: DownloadServer): Plan;
}

export function loadRecording(name: string): Recording {
  const writes = recordedWrites(name);
  const start = writes.findIndex(({ verb, resource }) => verb === 'create' && resource === 'plans');
  const spec = JSON.stringify(writes[start]?.spec);
  const later = writes.slice(start + 1).filter((write) => !isByPeople(write));
  return {
    writes: later,
    picks: signalled(later),
    leaders: [
      ...new Set(later.filter(({ resource }) => resource === 'plans/status').map(({ via }) => via)),
    ],
    plan: (downloads) => ({
      apiVersion: apiVersionOf(plans),
      kind: plans.kind,
      metadata: { name: 'autopilot' },
      spec: JSON.parse(adapt(asNew(spec), downloads)) as Plan['spec'],
    }),
  };
}

/** The download of a release in a recording that `npm run proof:k0s` made. */
const RELEASE = /(http:\/\/[\d.:]+)\/(v[^/"]+)\/k0s"/;
/** A hash with zeros alone is wrong on purpose. */
const HASH = /"sha256":"(?!0{64})[\da-f]{64}"/g;

/** Replaces a release that the proof built by the newer release of the doubles. The writes of k0s do not depend on it. */
function asNew(spec: string): string {
  const [, server = '', version = ''] = RELEASE.exec(spec) ?? [];
  if (version === '') return spec;
  return spec
    .replaceAll(`${server}/${version}/k0s"`, `${server}/k0s-new"`)
    .replaceAll(version, NEW)
    .replaceAll(HASH, `"sha256":"${FILES['/b/k0s-new']}"`);
}

/**
 * Points the URLs to the test's own server, and replaces the hashes. In the recorded URLs, a part of the path
 * determines the fault that the recordings' server simulates. That part is removed, because a test sets the faults of
 * its server itself.
 */
function adapt(spec: string, downloads: DownloadServer): string {
  const urls = spec.replaceAll(
    /http:\/\/[\d.:]+((?:\/[^"/]+)*?)(\/b\/[^"]*|\/w\/[^"]*|\/k0s-new|\/404\/x)"/g,
    (...found) => {
      const path = String(found[2]);
      return `${downloads.url}${path === '/k0s-new' ? '/b/k0s-new' : path}"`;
    },
  );
  return Object.entries(FILES).reduce(
    (text, [path, hash]) => text.replaceAll(hash, downloads.sha256(path)),
    urls,
  );
}

function isByPeople({ verb, resource }: RecordedWrite): boolean {
  return resource === 'plans' || verb === 'delete';
}
