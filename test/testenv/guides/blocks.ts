/** Reads the blocks of a guide that can be followed: what a reader pastes into a shell or a file, in order. */
import { readFileSync } from 'node:fs';

export interface Block {
  /** `<heading>: <first line>` */
  readonly title: string;
  readonly text: string;
  /**
   * What the word after the language says. `run`: ends well. `service`: keeps running. `worker`, `controller`: keeps running on
   * each such host. Any other word is the name of the file that the text belongs into.
   */
  readonly use: string;
}

/** Blocks without such a word are examples. */
export function blocksOf(page: string): Block[] {
  const text = readFileSync(page, 'utf8');
  const found = text.matchAll(
    /^(?:#+ (?<heading>[^\n]*)|```[a-z]*(?: (?<use>\S+))?\n(?<body>.*?)^```)$/gms,
  );
  let heading = '';
  const blocks: Block[] = [];
  for (const { groups = {} } of found) {
    heading = groups['heading'] ?? heading;
    const { use, body = '' } = groups;
    if (use !== undefined)
      blocks.push({ title: `${heading}: ${body.split('\n')[0]}`, text: body, use });
  }
  return blocks;
}
