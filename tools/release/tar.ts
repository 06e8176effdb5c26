/** Writes tar archives (POSIX ustar) that are the same, byte for byte, for the same content. */
import { Header } from 'tar';
import { RefitError } from '../../src/util/errors.ts';

export interface TarEntry {
  /** The path has no `/` at its start. The path of a folder ends with `/`. */
  readonly path: string;
  readonly mode: number;
  /** The content of a file. */
  readonly content?: Buffer;
  /** The target of a symbolic link. */
  readonly link?: string;
}

const BLOCK = 512;

/** Returns an archive. `time` is the time of every entry, in seconds since 1970. All entries belong to root. */
export function tar(entries: readonly TarEntry[], time: number): Buffer {
  const blocks = entries.flatMap((entry) => {
    const content = entry.content ?? Buffer.alloc(0);
    const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK);
    return [headerOf(entry, content.length, time), content, padding];
  });
  const end = Buffer.alloc(2 * BLOCK);
  return Buffer.concat([...blocks, end]);
}

function headerOf(entry: TarEntry, size: number, time: number): Buffer {
  const header = new Header({
    path: entry.path,
    mode: entry.mode,
    uid: 0,
    gid: 0,
    size,
    mtime: new Date(time * 1000),
    type: typeOf(entry),
    ...(entry.link === undefined ? {} : { linkpath: entry.link }),
  });
  const block = Buffer.alloc(BLOCK);
  // Programs that read only ustar would not find the rest of a long name, which is in an extended header.
  const needsExtendedHeader = header.encode(block);
  if (needsExtendedHeader)
    throw new RefitError('REFIT_FILE', `${entry.path} is too long for a tar archive`);
  return block;
}

function typeOf({ path, link }: TarEntry): 'Directory' | 'File' | 'SymbolicLink' {
  if (path.endsWith('/')) return 'Directory';
  return link === undefined ? 'File' : 'SymbolicLink';
}
