/** Reads what Helm has stored of a release: JSON in gzip in base64. */
import { gunzipSync } from 'node:zlib';
import { parseJson } from '../../util/json.ts';
import { membersIn } from './json-parts.ts';
import { readKinds } from './manifest-kinds.ts';

/**
 * The most bytes of a release once it is unpacked. A Secret has at most one mebibyte, and the charts and manifests in it
 * are packed to a fifth or a tenth, so real releases stay below this.
 */
const MOST_MEBIBYTES = 8;
/** The most kinds of Kubernetes in one release. There are fewer than this in all of Kubernetes. */
const MOST_KINDS = 500;
/** Helm stores a release without these bytes uncompressed, as its early versions did. */
const GZIP = Buffer.from([0x1f, 0x8b, 0x08]);

export interface StoredKinds {
  /** The kinds of Kubernetes in the manifest, such as `FlowSchema of flowcontrol.apiserver.k8s.io/v1beta3`. */
  readonly apis: readonly string[];
  /** Why the kinds may not be all, as the end of a sentence; undefined if they are all. */
  readonly unclear?: string;
}

/** Returns the kinds of these groups in the manifest of a stored release. */
export function storedKinds(stored: string, groups: ReadonlySet<string>): StoredKinds {
  const unpacked = unpackedFrom(stored);
  if (unpacked === 'too large')
    return {
      apis: [],
      unclear: `: it has more than ${MOST_MEBIBYTES} mebibytes once it is unpacked`,
    };
  const manifest = unpacked && manifestIn(unpacked);
  return manifest === undefined ? { apis: [], unclear: '' } : kindsIn(manifest, groups);
}

function kindsIn(manifest: string, groups: ReadonlySet<string>): StoredKinds {
  const apis = new Set<string>();
  const isClear = readKinds(manifest, ({ apiVersion, kind }) => {
    const [group = '', version] = apiVersion.split('/');
    if (version !== undefined && groups.has(group) && apis.size <= MOST_KINDS)
      apis.add(`${kind} of ${apiVersion}`);
  });
  const found = [...apis].slice(0, MOST_KINDS);
  if (apis.size > MOST_KINDS)
    return {
      apis: found,
      unclear: ` to the end: its manifest has more than ${MOST_KINDS} kinds of Kubernetes`,
    };
  return isClear
    ? { apis: found }
    : {
        apis: found,
        unclear:
          ' completely: a part of its manifest is written in a way that Refit does not understand',
      };
}

function unpackedFrom(stored: string): Buffer | 'too large' | undefined {
  const bytes = Buffer.from(stored, 'base64');
  if (!bytes.subarray(0, GZIP.length).equals(GZIP)) return bytes;
  try {
    return gunzipSync(bytes, { maxOutputLength: MOST_MEBIBYTES * 1024 * 1024 });
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
      ? 'too large'
      : undefined;
  }
}

/** Returns the manifest. Helm leaves it out if it is empty, but always stores the chart. */
function manifestIn(release: Buffer): string | undefined {
  const members = membersIn(release);
  const manifest = members?.get('manifest');
  if (manifest === undefined) return members?.has('chart') === true ? '' : undefined;
  const text = manifest[0] === 0x22 ? parseJson(manifest.toString()) : undefined;
  return typeof text === 'string' ? text : undefined;
}
