"""Invented names, places and merchants to draw a world's records from."""

_FIRST_NAMES = (
    "Aino Amelie Anouk Bastian Beatriz Bram Cecile Clemens Dario Delphine Edda Elias Emilia Enzo Fenna Finn "
    "Freya Gaspard Greta Hanne Hugo Ilse Ines Ivo Jasper Joana Jules Katrin Kilian Lars Leonie Lotte Luca "
    "Maarten Maeve Marta Matteo Mila Nadia Niels Noor Odile Oscar Paulina Pieter Quirin Rafael Rosalie Ruben "
    "Saskia Silvan Sofia Tessa Thibault Tomas Ursula Valentin Vera Wout Yara"
)
FIRST_NAMES = tuple(_FIRST_NAMES.split())
_LAST_NAMES = (
    "Aldenhoff Baptista Berghuis Bonnard Brandsma Caruso Castellani Delacroix Dorrestein Eberhart Falkenberg "
    "Ferreira Fontaine Gallagher Grunwald Haverkamp Heidecker Iannucci Jansma Kersten Kilbride Lachance "
    "Lindqvist Lombardi Marchetti Meirelles Moreau Nieuwland Obermann Ortega Pellegrin Quintana Ravenscroft "
    "Rinaldi Rosendahl Salgado Schuurman Sinnott Steinbach Tavares Thorwald Ullmann Valcourt Verhagen Vossberg "
    "Wagenaar Westerhof Winterfeld Zandstra Zimmerling"
)
LAST_NAMES = tuple(_LAST_NAMES.split())
PLACES = (
    ("Lindenweg", "10437", "Berlin", "DE"),
    ("Amselgasse", "50677", "Cologne", "DE"),
    ("Rosenhof", "04109", "Leipzig", "DE"),
    ("Rue des Tilleuls", "69003", "Lyon", "FR"),
    ("Quai du Moulin", "44000", "Nantes", "FR"),
    ("Prinsenkade", "3011", "Rotterdam", "NL"),
    ("Molenstraat", "3512", "Utrecht", "NL"),
    ("Via dei Gelsi", "40126", "Bologna", "IT"),
    ("Calle del Olivo", "46004", "Valencia", "ES"),
    ("Rua das Flores", "4050", "Porto", "PT"),
    ("Harbour Row", "D02", "Dublin", "IE"),
    ("Kastanienallee", "8010", "Graz", "AT"),
    ("Korenmarkt", "9000", "Ghent", "BE"),
)
PLACES_ELSEWHERE = (
    ("Maple Crescent", "M5V 2T6", "Toronto", "CA"),
    ("Seefeldstrasse", "8008", "Zurich", "CH"),
    ("Fjordgata", "7010", "Trondheim", "NO"),
    ("Kings Parade", "BS8 2LR", "Bristol", "GB"),
    ("Juniper Avenue", "97205", "Portland", "US"),
)
COUNTRY_NAMES = {
    "AT": "Austria",
    "BE": "Belgium",
    "CA": "Canada",
    "CH": "Switzerland",
    "DE": "Germany",
    "ES": "Spain",
    "FR": "France",
    "GB": "the United Kingdom",
    "IE": "Ireland",
    "IT": "Italy",
    "NL": "the Netherlands",
    "NO": "Norway",
    "PT": "Portugal",
    "US": "the United States",
}
SHOPS = (
    "Nordlicht Elektronik",
    "Papeterie Violette",
    "Velowerk",
    "Casa Ceramica",
    "Blauwe Tulp Wonen",
    "Kettle & Crumb",
    "Solis Outdoor",
    "Mirabelle Mode",
    "Pixelkiste",
    "Atelier Noisette",
    "Grunberg Garten",
    "Oceanica Sport",
    "Buchhaus Falke",
    "Lumiere Lampes",
    "Fado Records",
    "Stijl Meubels",
)
DAILY = (
    "Markthalle Supermarkt",
    "Boulangerie Petit",
    "Stadtbad Cafe",
    "Trattoria Sole",
    "Groene Apotheek",
    "Metro Tickets",
)
COMPANIES = (
    "Fitwerk Studios",
    "Helios Energie",
    "Kanaal Telecom",
    "Aqua Viva Wasser",
    "Lesezirkel Abo",
    "Securia Versicherung",
    "Streamora",
    "Mobilis Leasing",
)
EMPLOYERS = ("Brightfield Logistics", "Vandermeer Verlag", "Atlas Maschinenbau", "Clinique du Parc", "Nexora Software")
BANK_MACHINES = ("Tidewell ATM Central Station", "Tidewell ATM Old Market", "Tidewell ATM Airport Hall")
OTHER_MACHINES = ("Geldpunt Noord", "CashExpress Bahnhof", "Bancomat Piazza Nova")
SAVINGS_NAMES = ("Rainy day", "Holiday", "New bike", "Kitchen", "Wedding", "Piano", "Garden shed", "Emergency")
"""What a savings account may be called."""
