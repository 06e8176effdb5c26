/** Writes tar archives (POSIX ustar) that are the same, byte for byte, for the same content. */
import { RefitError } from '../../src/util/errors.ts';

export interface TarEntry {
  /** Without `/` at its start; a folder ends with one. */
  readonly path: string;
  readonly mode: number;
  /** Of a file. */
  readonly content?: Buffer;
  /** Where a symbolic link points. */
  readonly link?: string;
}

const BLOCK = 512;
const TYPES = { file: '0', link: '2', folder: '5' } as const;
/** Longest name, and longest folder before it. */
const [LONGEST_NAME, LONGEST_PREFIX] = [100, 155];

/** `time` is that of every entry, in seconds since 1970. All belong to root. */
export function tar(entries: readonly TarEntry[], time: number): Buffer {
  const blocks = entries.flatMap((entry) => {
    const content = entry.content ?? Buffer.alloc(0);
    return [
      header(entry, content.length, time),
      content,
      Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK),
    ];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

function header({ path, mode, link }: TarEntry, size: number, time: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const [prefix, name] = split(path);
  const type = path.endsWith('/') ? TYPES.folder : link === undefined ? TYPES.file : TYPES.link;
  block.write(name, 0);
  octal(block, mode, 100, 8);
  octal(block, 0, 108, 8);
  octal(block, 0, 116, 8);
  octal(block, size, 124, 12);
  octal(block, time, 136, 12);
  block.write('        ', 148);
  block.write(type, 156);
  block.write(link ?? '', 157);
  block.write('ustar\u{0}00', 257, 'latin1');
  block.write(prefix, 345);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\u{0} `, 148, 'latin1');
  return block;
}

function octal(block: Buffer, value: number, at: number, length: number): void {
  block.write(value.toString(8).padStart(length - 1, '0'), at);
}

function split(path: string): [prefix: string, name: string] {
  if (path.length <= LONGEST_NAME) return ['', path];
  const at = path.indexOf('/', path.length - LONGEST_NAME - 1);
  if (at > 0 && at <= LONGEST_PREFIX) return [path.slice(0, at), path.slice(at + 1)];
  throw new RefitError('REFIT_FILE', `${path} is too long for a tar archive`);
}
