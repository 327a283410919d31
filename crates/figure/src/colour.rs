//! Colours: the palette of the charts, the colour scale of maps, and contrast.
//!
//! The palette is after Okabe and Ito, whose hues stay apart for all common kinds of colour blindness. The
//! scale of maps carries its order in lightness alone, so it also reads in grey.

/// An opaque colour in sRGB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour {
    /// The part of red, 0 to 255.
    pub red: u8,
    /// The part of green, 0 to 255.
    pub green: u8,
    /// The part of blue, 0 to 255.
    pub blue: u8,
}

impl Colour {
    /// What all figures are drawn on.
    pub const PAPER: Colour = Colour::hex(0xffffff);
    /// Titles and whatever must stand out.
    pub const INK: Colour = Colour::hex(0x16191d);
    /// The colour of running text: labels and legends.
    pub const TEXT: Colour = Colour::hex(0x3f4650);
    /// Text that steps back: ticks and subtitles.
    pub const MUTED: Colour = Colour::hex(0x6b7280);
    /// The line at the foot of a chart.
    pub const AXIS: Colour = Colour::hex(0x8b919b);
    /// The colour of lines behind the data.
    pub const GRID: Colour = Colour::hex(0xe6e7e9);
    /// The colour of cells without a value.
    pub const MISSING: Colour = Colour::hex(0xf1f1f2);

    /// The colours of series in their order; the first one is the emphasised one.
    pub const PALETTE: [Colour; 7] = [
        Colour::hex(0xd55e00),
        Colour::hex(0x0072b2),
        Colour::hex(0x009e73),
        Colour::hex(0xcc79a7),
        Colour::hex(0x56b4e9),
        Colour::hex(0xe69f00),
        Colour::hex(0x5c636e),
    ];

    /// Returns the colour that is written `0xrrggbb`.
    pub const fn hex(rgb: u32) -> Colour {
        Colour { red: (rgb >> 16) as u8, green: (rgb >> 8) as u8, blue: rgb as u8 }
    }

    /// The colour of the series at a place; after the last one the palette starts again.
    pub fn nth(place: usize) -> Colour {
        Colour::PALETTE[place % Colour::PALETTE.len()]
    }

    /// The colour of the block at a place; after the last one the palette starts again, lighter, so that no two of fourteen are alike.
    pub fn of_block(place: usize) -> Colour {
        let is_again = place >= Colour::PALETTE.len();
        Colour::nth(place).lighter(if is_again { 0.55 } else { 0.0 })
    }

    /// Returns the colour of a map at a value from 0 (light) to 1 (dark). Lightness is linear in the value.
    pub fn on_scale(share: f64) -> Colour {
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        let lightness = LIGHTEST + (DARKEST - LIGHTEST) * share;
        let position = share * (TINTS.len() - 1) as f64;
        let before = (position as usize).min(TINTS.len() - 2);
        let between = position - before as f64;
        let mix = |from: f64, to: f64| from + (to - from) * between;
        let (a, b) = (TINTS[before], TINTS[before + 1]);
        from_oklab([lightness, mix(a.0, b.0), mix(a.1, b.1)])
    }

    /// A mixture with white: 0 leaves the colour, 1 is white.
    pub fn lighter(self, share: f64) -> Colour {
        let mix = |channel: u8| {
            (f64::from(channel) + (255.0 - f64::from(channel)) * share.clamp(0.0, 1.0)).round()
                as u8
        };
        Colour { red: mix(self.red), green: mix(self.green), blue: mix(self.blue) }
    }

    /// Ink or white, whichever reads better on this colour.
    pub fn readable(self) -> Colour {
        let (own, ink) = (self.luminance(), Colour::INK.luminance());
        // WCAG's contrast ratio, the lighter one above.
        let with_ink = (own + 0.05) / (ink + 0.05);
        let with_white = 1.05 / (own + 0.05);
        if with_ink >= with_white { Colour::INK } else { Colour::PAPER }
    }

    /// Relative luminance as WCAG defines it, 0 to 1.
    pub fn luminance(self) -> f64 {
        0.2126 * linear(self.red) + 0.7152 * linear(self.green) + 0.0722 * linear(self.blue)
    }

    /// Returns the colour as CSS writes it, `#rrggbb`.
    pub fn css(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.red, self.green, self.blue)
    }
}

const LIGHTEST: f64 = 0.975;
const DARKEST: f64 = 0.29;

/// The tint (a and b of OKLab) of the scale of maps at equal distances: straw, green, teal, blue, night.
const TINTS: [(f64, f64); 6] = [
    (-0.012, 0.038),
    (-0.052, 0.068),
    (-0.082, 0.012),
    (-0.055, -0.058),
    (-0.020, -0.100),
    (0.008, -0.080),
];

/// Converts a channel to linear light, by the definition of sRGB.
fn linear(channel: u8) -> f64 {
    let value = f64::from(channel) / 255.0;
    if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

fn channel(light: f64) -> u8 {
    let light = light.clamp(0.0, 1.0);
    let value =
        if light <= 0.0031308 { light * 12.92 } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 };
    (value * 255.0).round() as u8
}

/// Converts OKLab to sRGB (Ottosson, <https://bottosson.github.io/posts/oklab/>).
fn from_oklab([lightness, a, b]: [f64; 3]) -> Colour {
    let long = (lightness + 0.3963377774 * a + 0.2158037573 * b).powi(3);
    let medium = (lightness - 0.1055613458 * a - 0.0638541728 * b).powi(3);
    let short = (lightness - 0.0894841775 * a - 1.2914855480 * b).powi(3);
    Colour {
        red: channel(4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short),
        green: channel(-1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short),
        blue: channel(-0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_darkens_at_every_step() {
        let luminances: Vec<f64> =
            (0..=100).map(|k| Colour::on_scale(f64::from(k) / 100.0).luminance()).collect();
        assert!(luminances.windows(2).all(|pair| pair[1] < pair[0]), "{luminances:?}");
        assert!(luminances[0] > 0.85 && luminances[100] < 0.06);
    }

    #[test]
    fn text_on_the_scale_has_contrast_everywhere() {
        for k in 0..=100 {
            let ground = Colour::on_scale(f64::from(k) / 100.0);
            let (a, b) = (ground.luminance(), ground.readable().luminance());
            let ratio = (a.max(b) + 0.05) / (a.min(b) + 0.05);
            assert!(ratio >= 4.0, "{ratio} at {k}");
        }
    }

    #[test]
    fn shares_that_are_none_still_have_a_colour() {
        assert_eq!(Colour::on_scale(f64::NAN), Colour::on_scale(0.0));
        assert_eq!(Colour::on_scale(7.0), Colour::on_scale(1.0));
    }

    #[test]
    fn blocks_side_by_side_differ() {
        let colours: Vec<String> = (0..14).map(|place| Colour::of_block(place).css()).collect();
        assert!((1..14).all(|k| !colours[..k].contains(&colours[k])), "{colours:?}");
    }

    #[test]
    fn colours_are_written_as_css_reads_them() {
        assert_eq!(Colour::hex(0x0a0bff).css(), "#0a0bff");
        assert_eq!(Colour::hex(0x000000).lighter(1.0), Colour::PAPER);
    }
}
