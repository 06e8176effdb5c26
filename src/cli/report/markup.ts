/** Builds markup in which each text from outside is escaped: a template can contain no other text. */

/** A text in a markup language. Only a tag of `tagOf` makes one. */
export class Markup {
  readonly #text: string;

  private constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }

  /**
   * Returns the tag of a markup language. The tag escapes each value of a template, except for numbers and finished markup. `escape` also
   * gets the markup in front of the value.
   */
  static tagOf(escape: (text: string, before: string) => string): MarkupTag {
    return (parts, ...values) => {
      let text = parts[0] ?? '';
      for (const [index, value] of values.entries()) {
        const isFinished = value instanceof Markup || typeof value === 'number';
        text += isFinished ? value.toString() : escape(value, text);
        text += parts[index + 1] ?? '';
      }
      return new Markup(text);
    };
  }

  /** Returns the parts with line breaks between them. */
  static lines(parts: readonly Markup[], between: '\n' | '\n\n' = '\n'): Markup {
    const texts = parts.map(String);
    return new Markup(texts.join(between));
  }
}

export type MarkupTag = (
  parts: TemplateStringsArray,
  ...values: readonly (string | number | Markup)[]
) => Markup;
